package runtimes

import (
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

const longestID = 253

// readEntry reads one entry of the registry. Fields that are not there have the figures of the
// built-in type, except the image; fields that are not known are for others. The Runtime is whole
// only if there are no problems; its ID is there where the entry has one.
func readEntry(place int, raw json.RawMessage, defaults Defaults) (Runtime, []Problem) {
	f := &fields{entry: place}
	entry := part{}
	if err := json.Unmarshal(raw, &entry.of); err != nil || entry.of == nil {
		f.wrong("", "it is %s: make it an object", clip(string(raw)))
		return Runtime{}, f.problems
	}
	runtime := Default("")
	runtime.ID, _ = take[string](f, entry, "id", "text")
	switch {
	case runtime.ID == "":
		f.wrong("id", "it is missing: give the runner type a name")
	case len(runtime.ID) > longestID || strings.TrimSpace(runtime.ID) != runtime.ID:
		f.wrong("id", "it is longer than %d bytes, or begins or ends with a space: choose another", longestID)
	}
	f.id = runtime.ID
	f.container(entry, &runtime)
	f.sandbox(entry, &runtime, defaults)
	f.auth(entry, &runtime)
	return runtime, f.problems
}

func (f *fields) container(entry part, runtime *Runtime) {
	container := f.inside(entry, "container")
	runtime.Image = f.image(container, "image", "the image of the runner")
	if runtime.Image == "" && !f.told("container", "container.image") {
		f.wrong("container.image", "it is missing: name the image of the runner")
	}
	if port, ok := take[int64](f, container, "port", "a whole number"); ok && port != 0 {
		if port < 1 || port > 65535 {
			f.wrong("container.port", "it is %d: set it to a number from 1 to 65535", port)
		} else {
			runtime.Port = int32(port)
		}
	}
	runtime.Env, _ = take[map[string]string](f, container, "env", "an object of texts")
	for _, name := range slices.Sorted(maps.Keys(runtime.Env)) {
		if wrong := validation.IsEnvVarName(name); len(wrong) > 0 {
			f.wrong("container.env", "%s cannot be the name of a variable: rename it", quote(name))
		}
	}
	f.resources(container, &runtime.Resources)
}

// told says that one of these fields has been complained about already.
func (f *fields) told(names ...string) bool {
	return slices.ContainsFunc(f.problems, func(p Problem) bool { return slices.Contains(names, p.Field) })
}

func (f *fields) image(from part, name, what string) string {
	image, _ := take[string](f, from, name, "text")
	if strings.ContainsFunc(image, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		f.wrong(from.path+name, "%s has a space in it: correct the name of %s", quote(image), what)
	}
	return image
}

// resources puts what the entry says over the built-in figures. Where it says only one of a
// request and its limit, the built-in figure of the other gives way.
func (f *fields) resources(container part, onto *corev1.ResourceRequirements) {
	given := f.inside(container, "resources")
	requests := f.quantities(given, "requests")
	limits := f.quantities(given, "limits")
	maps.Copy(onto.Requests, requests)
	maps.Copy(onto.Limits, limits)
	for _, name := range slices.Sorted(maps.Keys(onto.Requests)) {
		request := onto.Requests[name]
		limit, limited := onto.Limits[name]
		whole := strings.Contains(string(name), "/") // devices are not shared
		switch {
		case whole && !limited:
			onto.Limits[name] = request
			continue
		case whole && request.Cmp(limit) != 0:
			f.wrong("container.resources.requests."+string(name), "it is %s and the limit is %s: make them the same", request.String(), limit.String())
			continue
		case !limited || request.Cmp(limit) <= 0:
			continue
		}
		_, asked := requests[name]
		_, bounded := limits[name]
		switch {
		case asked && bounded:
			f.wrong("container.resources.requests."+string(name), "it is %s, more than the limit of %s: lower it or raise the limit", request.String(), limit.String())
		case asked:
			onto.Limits[name] = request
		default:
			onto.Requests[name] = limit
		}
	}
}

func (f *fields) quantities(from part, name string) corev1.ResourceList {
	texts := f.inside(from, name)
	list := corev1.ResourceList{}
	for _, of := range slices.Sorted(maps.Keys(texts.of)) {
		if !countable(of) {
			f.wrong(texts.path+clip(of), "there is no such resource: use cpu, memory, ephemeral-storage, or a name with a domain such as example.com/gpu")
			continue
		}
		if quantity, ok := f.quantity(texts, of); ok {
			list[corev1.ResourceName(of)] = quantity
		}
	}
	return list
}

func countable(name string) bool {
	switch corev1.ResourceName(name) {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return true
	default:
		return strings.Contains(name, "/") && len(validation.IsQualifiedName(name)) == 0
	}
}

// quantity reads an amount that must be more than nothing.
func (f *fields) quantity(from part, name string) (resource.Quantity, bool) {
	text, ok := take[string](f, from, name, `a quantity in quotes, such as "500m" or "2Gi"`)
	if !ok {
		return resource.Quantity{}, false
	}
	quantity, err := resource.ParseQuantity(text)
	if err != nil {
		f.wrong(from.path+name, `%s is not a quantity: write one such as "500m" or "2Gi"`, quote(text))
		return resource.Quantity{}, false
	}
	if quantity.Sign() <= 0 {
		f.wrong(from.path+name, "it is %s: set it to more than 0", clip(text))
		return resource.Quantity{}, false
	}
	return quantity, true
}

func (f *fields) sandbox(entry part, runtime *Runtime, defaults Defaults) {
	sandbox := f.inside(entry, "sandbox")
	if dir, _ := take[string](f, sandbox, "stateDir", "text"); dir != "" {
		runtime.StateDir = dir
		if !StateDir(dir) {
			f.wrong("sandbox.stateDir", "%s cannot be used: %s", quote(dir), StateDirRule)
		}
	}
	if kind, _ := take[string](f, sandbox, "persistence", "text"); kind != "" {
		runtime.Persistence = Persistence(kind)
		if !slices.Contains([]Persistence{None, Volume, S3}, runtime.Persistence) {
			f.wrong("sandbox.persistence", "%s is not a kind of persistence: set it to none, pvc or s3", quote(kind))
		}
	}
	if size, ok := f.quantity(sandbox, "workspaceSize"); ok {
		runtime.WorkspaceSize = size
	}
	if grace, ok := take[int64](f, sandbox, "terminationGracePeriod", "a whole number of seconds"); ok && grace != 0 {
		runtime.GracePeriod = grace
		if grace < 0 {
			f.wrong("sandbox.terminationGracePeriod", "it is %d: set it to a number of seconds", grace)
		}
	}
	f.seed(sandbox, runtime)
	runtime.StateSyncImage = f.image(sandbox, "stateSyncImage", "the image")
	if runtime.StateSyncImage == "" {
		runtime.StateSyncImage = defaults.StateSyncImage
	}
	if runtime.StateSyncImage == "" && (runtime.Persistence == S3 || runtime.Seed.CloneRepos) {
		f.wrong("sandbox.stateSyncImage", "it is missing, and the operator has no STATE_SYNC_IMAGE: set one of them")
	}
}

// seed reads what a workspace is filled with. A type that keeps its state in S3 and does not say
// otherwise gets it back: keeping it would serve nothing else.
func (f *fields) seed(sandbox part, runtime *Runtime) {
	seed := f.inside(sandbox, "seed")
	runtime.Seed.CloneRepos, _ = take[bool](f, seed, "cloneRepos", "true or false")
	hydrate, said := take[bool](f, seed, "hydrateState", "true or false")
	runtime.Seed.HydrateState = hydrate || !said && runtime.Persistence == S3
}

func (f *fields) auth(entry part, runtime *Runtime) {
	auth := f.inside(entry, "auth")
	runtime.Auth.Keys, _ = take[[]string](f, auth, "requiredSecretKeys", "a list of texts")
	for _, key := range runtime.Auth.Keys {
		if len(validation.IsConfigMapKey(key)) > 0 {
			f.wrong("auth.requiredSecretKeys", "%s cannot be the key of a Secret: correct it", quote(key))
		}
	}
	switch logic, _ := take[string](f, auth, "secretKeyLogic", "text"); logic {
	case "", "all":
	case "any":
		runtime.Auth.AnyKey = true
	default:
		f.wrong("auth.secretKeyLogic", "%s is not known: set it to any or all", quote(logic))
	}
	supported, said := take[bool](f, auth, "vertexSupported", "true or false")
	runtime.Auth.NoVertex = said && !supported
}

// StateDirRule says what a state folder must be.
const StateDirRule = "it must be the path of a folder relative to the workspace, such as .claude"

// StateDir says whether a folder can be the state folder of a runner: it is mounted at a place of
// its own, beside the credentials for Vertex AI.
func StateDir(dir string) bool {
	parts := strings.Split(dir, "/")
	return parts[0] != "" && parts[0] != "." && parts[0] != "vertex" && path.Clean(dir) == dir &&
		!slices.Contains(parts, "..") && !strings.ContainsAny(dir, ":\\$\x00") && len(dir) <= 200
}
