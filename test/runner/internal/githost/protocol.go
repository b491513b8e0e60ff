package githost

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/plumbing/transport/server"
)

// staleUpdate is what a client is told whose push starts from a commit that is
// no longer the newest; git prints it beside the branch.
const staleUpdate = "fetch first"

// Load lets the protocol library find the storage: a repository is its own loader.
func (repo *repository) Load(*transport.Endpoint) (storer.Storer, error) {
	return repo.storage, nil
}

// advertise answers the first request of a clone, fetch or push: which branches
// there are, and where they stand.
func advertise(repo *repository, r *http.Request, _ io.Reader) (reply, error) {
	repo.mu.Lock()
	defer repo.mu.Unlock()
	service := r.URL.Query().Get("service")
	refs, err := repo.advertised(r.Context(), service)
	if err != nil {
		return reply{}, err
	}
	refs.Prefix = [][]byte{[]byte("# service=" + service), pktline.Flush}
	var out bytes.Buffer
	if err := refs.Encode(&out); err != nil {
		return reply{}, fmt.Errorf("writing the branches of %q: %w", repo.name, err)
	}
	return reply{contentType: "application/x-" + service + "-advertisement", body: out.Bytes()}, nil
}

func (repo *repository) advertised(ctx context.Context, service string) (*packp.AdvRefs, error) {
	var session transport.Session
	var err error
	switch service {
	case "git-upload-pack":
		session, err = server.NewServer(repo).NewUploadPackSession(nil, nil)
	case "git-receive-pack":
		session, err = server.NewServer(repo).NewReceivePackSession(nil, nil)
	default:
		return nil, requestError{fmt.Errorf("service %q is not served here: clone, fetch or push with git over smart HTTP", service)}
	}
	if err != nil {
		return nil, fmt.Errorf("opening %q for %s: %w", repo.name, service, err)
	}
	refs, err := session.AdvertisedReferencesContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the branches of %q: %w", repo.name, err)
	}
	if service == "git-receive-pack" {
		// Clients must send whole objects, not differences to ones that only we have.
		if err := refs.Capabilities.Set(capability.Capability("no-thin")); err != nil {
			return nil, fmt.Errorf("announcing no-thin for %q: %w", repo.name, err)
		}
	}
	return refs, nil
}

// upload answers a clone or fetch with the objects the client asks for.
//
// Finding out over several requests what the client has already is not offered:
// a client that asks for it is told that nothing is known ("NAK"), gives up
// asking, says "done", and gets everything reachable.
func upload(repo *repository, r *http.Request, body io.Reader) (reply, error) {
	request := packp.NewUploadPackRequest()
	if err := request.Decode(body); err != nil {
		return reply{}, requestError{fmt.Errorf("reading what to send of %q: %w", repo.name, err)}
	}
	haves, done, err := readHaves(body)
	if err != nil {
		return reply{}, requestError{fmt.Errorf("reading what the client of %q has: %w", repo.name, err)}
	}
	var out bytes.Buffer
	answer := func() reply {
		return reply{contentType: "application/x-git-upload-pack-result", body: out.Bytes()}
	}
	if !done {
		if err := pktline.NewEncoder(&out).EncodeString("NAK\n"); err != nil {
			return reply{}, fmt.Errorf("answering a fetch of %q: %w", repo.name, err)
		}
		return answer(), nil
	}
	repo.mu.Lock()
	defer repo.mu.Unlock()
	for _, have := range haves {
		if repo.storage.HasEncodedObject(have) == nil {
			request.Haves = append(request.Haves, have)
		}
	}
	if request.IsEmpty() {
		request.Haves = nil // it has all it wants, yet asks: send it again
	}
	session, err := server.NewServer(repo).NewUploadPackSession(nil, nil)
	if err != nil {
		return reply{}, fmt.Errorf("opening %q to send: %w", repo.name, err)
	}
	response, err := session.UploadPack(r.Context(), request)
	if err != nil {
		return reply{}, requestError{fmt.Errorf("collecting the objects of %q: %w", repo.name, err)}
	}
	if err := response.Encode(&out); err != nil {
		return reply{}, fmt.Errorf("packing the objects of %q: %w", repo.name, err)
	}
	return answer(), nil
}

// readHaves reads the rest of a fetch: the commits the client has, and whether
// it is done with telling.
func readHaves(body io.Reader) (haves []plumbing.Hash, done bool, err error) {
	lines := pktline.NewScanner(body)
	for lines.Scan() {
		line := strings.TrimSpace(string(lines.Bytes()))
		if line == "done" {
			return haves, true, nil
		}
		if hash, found := strings.CutPrefix(line, "have "); found {
			haves = append(haves, plumbing.NewHash(hash))
		}
	}
	return haves, false, lines.Err()
}

// receive takes a push. A push that starts from a commit that is no longer the
// newest is refused, so that of two pushes at once neither loses its work.
func receive(repo *repository, r *http.Request, body io.Reader) (reply, error) {
	request := packp.NewReferenceUpdateRequest()
	answer := reply{contentType: "application/x-git-receive-pack-result"}
	switch err := request.Decode(body); {
	case errors.Is(err, packp.ErrEmpty):
		return answer, nil // git's probe before a large push
	case err != nil:
		return reply{}, requestError{fmt.Errorf("reading the push to %q: %w", repo.name, err)}
	}
	repo.mu.Lock()
	defer repo.mu.Unlock()
	status, err := repo.update(r.Context(), request)
	if err != nil {
		return reply{}, err
	}
	var out bytes.Buffer
	if status != nil {
		if err := status.Encode(&out); err != nil {
			return reply{}, fmt.Errorf("reporting the push to %q: %w", repo.name, err)
		}
	}
	answer.body = out.Bytes()
	return answer, nil
}

func (repo *repository) update(ctx context.Context, request *packp.ReferenceUpdateRequest) (*packp.ReportStatus, error) {
	deletesOnly := true
	refused := packp.NewReportStatus()
	refused.UnpackStatus = "ok"
	stale := false
	for _, command := range request.Commands {
		current := plumbing.ZeroHash
		switch ref, err := repo.storage.Reference(command.Name); {
		case err == nil:
			current = ref.Hash()
		case !errors.Is(err, plumbing.ErrReferenceNotFound):
			return nil, fmt.Errorf("reading %s of %q: %w", command.Name, repo.name, err)
		}
		stale = stale || current != command.Old
		deletesOnly = deletesOnly && command.Action() == packp.Delete
		refused.CommandStatuses = append(refused.CommandStatuses,
			&packp.CommandStatus{ReferenceName: command.Name, Status: staleUpdate})
	}
	if stale {
		return refused, nil
	}
	if deletesOnly {
		request.Packfile = nil // a push that only deletes carries no objects
	}
	session, err := server.NewServer(repo).NewReceivePackSession(nil, nil)
	if err != nil {
		return nil, fmt.Errorf("opening %q to receive: %w", repo.name, err)
	}
	status, err := session.ReceivePack(ctx, request)
	if status == nil && err != nil {
		return nil, fmt.Errorf("receiving a push to %q: %w", repo.name, err)
	}
	return status, nil // what went wrong, if anything, is in the status for the client
}
