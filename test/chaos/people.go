package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// wish is a session with what its user asked for so far.
type wish struct {
	key     types.NamespacedName
	prompt  string
	ends    v1alpha1.Phase // where its runner takes it by itself
	created time.Time

	mu     sync.Mutex // one request after another
	uid    types.UID
	starts int    // how often a start may have been asked for
	last   string // request
	asked  time.Time
	gone   bool // its user has deleted it
}

// script chooses what a runner does. The times are short, for the round is.
func script(dice *rand.Rand) (prompt string, ends v1alpha1.Phase) {
	work := fmt.Sprintf("sleep %ds\n", 1+dice.IntN(12))
	if dice.IntN(4) == 0 {
		work = fmt.Sprintf("ready-after %ds\n", 1+dice.IntN(3)) + work
	}
	switch dice.IntN(20) {
	case 0, 1, 2, 3, 4, 5:
		return work + "exit 0", v1alpha1.PhaseCompleted
	case 6:
		return work + "exit 28", v1alpha1.PhaseFailed // no space left on device
	case 7:
		return work + "evict", v1alpha1.PhaseFailed // by a node whose disk is full
	case 8:
		return work + "oom", v1alpha1.PhaseFailed
	case 9:
		return work + "crash", v1alpha1.PhaseFailed
	case 10, 11:
		return "ignore-sigterm", v1alpha1.PhaseRunning // takes its whole grace period to stop
	default:
		return "hang", v1alpha1.PhaseRunning
	}
}

// waves brings the round's sessions, a handful at a time.
func (r *round) waves(ctx context.Context) error {
	dice := r.dice(1)
	rest := r.lasts * 7 / 10 / time.Duration(1+r.sessions/8)
	for n := 0; n < r.sessions; {
		for range min(1+dice.IntN(15), r.sessions-n) {
			w := &wish{key: types.NamespacedName{Namespace: r.good[dice.IntN(len(r.good))], Name: fmt.Sprintf("s-%d", n)}}
			w.prompt, w.ends = script(dice)
			if err := r.bring(ctx, w); err != nil {
				return err
			}
			n++
		}
		pause(ctx, rest)
	}
	return nil
}

// bring creates a session.
func (r *round) bring(ctx context.Context, w *wish) error {
	never := int64(0)
	w.created = time.Now()
	err := insist(ctx, func() error {
		s := &v1alpha1.AgenticSession{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.key.Namespace, Name: w.key.Name},
			Spec:       v1alpha1.AgenticSessionSpec{InitialPrompt: w.prompt, Timeout: &never, InactivityTimeout: &never},
		}
		err := r.cluster.Client.Create(ctx, s)
		if apierrors.IsAlreadyExists(err) { // the answer to the first try was lost
			err = r.cluster.Client.Get(ctx, w.key, s)
		}
		w.uid = s.UID
		return err
	})
	if err != nil {
		return fmt.Errorf("bringing session %s: %w", w.key, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wishes = append(r.wishes, w)
	return nil
}

// users stop, start and delete sessions at random until the context ends.
func (r *round) users(ctx context.Context) error {
	dice := r.dice(2)
	between := r.lasts / time.Duration(1+r.sessions)
	var asking sync.WaitGroup
	defer asking.Wait()
	for ctx.Err() == nil {
		pause(ctx, between)
		r.mu.Lock()
		var w *wish
		if len(r.wishes) > 0 {
			w = r.wishes[dice.IntN(len(r.wishes))]
		}
		r.mu.Unlock()
		choice := dice.IntN(40)
		if w == nil {
			continue
		}
		asking.Go(func() {
			switch {
			case choice == 0:
				r.remove(w)
			case choice < 18:
				r.ask(w, v1alpha1.DesiredStopped)
			case choice < 36:
				r.ask(w, v1alpha1.DesiredRunning)
			default: // somebody who cannot make up their mind
				for _, what := range []string{v1alpha1.DesiredStopped, v1alpha1.DesiredRunning, v1alpha1.DesiredStopped} {
					r.ask(w, what)
				}
			}
		})
	}
	return nil
}

// ask asks for a stop or a start as users do, until the API server has taken it.
func (r *round) ask(w *wish, what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gone {
		return
	}
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"annotations":{%q:%q}}}`, w.uid, v1alpha1.AnnotationDesiredPhase, what)
	err := insist(r.whole, func() error {
		if what == v1alpha1.DesiredRunning {
			w.starts++ // also if the answer is lost: it may have taken effect
		}
		s := &v1alpha1.AgenticSession{ObjectMeta: metav1.ObjectMeta{Namespace: w.key.Namespace, Name: w.key.Name}}
		return r.cluster.Client.Patch(r.whole, s, client.RawPatch(types.MergePatchType, patch))
	})
	if err != nil {
		r.violation("seed %d: session %s cannot be asked to be %s: %v", r.seed, w.key, what, err)
		return
	}
	w.last, w.asked = what, time.Now()
}

// remove deletes the session.
func (r *round) remove(w *wish) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone = true
	s := &v1alpha1.AgenticSession{ObjectMeta: metav1.ObjectMeta{Namespace: w.key.Namespace, Name: w.key.Name}}
	err := insist(r.whole, func() error { return client.IgnoreNotFound(r.cluster.Client.Delete(r.whole, s)) })
	if err != nil {
		r.violation("seed %d: session %s cannot be deleted: %v", r.seed, w.key, err)
	}
}

// hostility is a hostile tenant who brings broken sessions as fast as they are taken.
func (r *round) hostility(ctx context.Context) error {
	dice := r.dice(3)
	for i := 0; i < r.flood && ctx.Err() == nil; i++ {
		s := broken(dice)
		s.Namespace, s.Name = r.hostile[dice.IntN(len(r.hostile))], fmt.Sprintf("broken-%d", i)
		err := r.cluster.Client.Create(ctx, s)
		switch {
		case err == nil:
			r.count("broken session of a hostile tenant")
		case !apierrors.IsInvalid(err):
			pause(ctx, 200*time.Millisecond)
		}
		if i%20 == 0 {
			pause(ctx, r.lasts/time.Duration(1+r.flood/20)/2)
		}
	}
	return nil
}

// broken is a session that never does what its owner says it should.
func broken(dice *rand.Rand) *v1alpha1.AgenticSession {
	s := &v1alpha1.AgenticSession{}
	switch dice.IntN(5) {
	case 0:
		s.Spec.InitialPrompt = "exit 1"
	case 1:
		s.Spec.InitialPrompt = "never-ready"
	case 2:
		s.Spec.InitialPrompt = "crash\n" + string(slices.Repeat([]byte("x"), 100_000))
	case 3:
		s.Spec.Repos = []v1alpha1.Repo{{URL: "https://example.com/.."}}
	default:
		s.Spec.InitialPrompt = "oom"
		s.Annotations = map[string]string{v1alpha1.AnnotationDesiredPhase: "Nonsense"}
	}
	return s
}
