package serving

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// AddTo has the manager keep the certificates: every replica reads them, the leader makes the own
// one. What goes wrong here never keeps the manager from its work.
func (c *Certificates) AddTo(ctx context.Context, mgr ctrl.Manager) error {
	c.mu.Lock()
	c.events = mgr.GetEventRecorder("agentic-operator")
	c.mu.Unlock()
	k := &keeper{certificates: c, client: mgr.GetClient(), live: mgr.GetAPIReader(), wake: make(chan struct{}, 1)}
	for name, take := range map[string]func(*corev1.Secret){
		c.options.GivenSecret: c.takeGiven,
		OwnSecret:             func(secret *corev1.Secret) { c.takeOwn(secret); k.signal() },
	} {
		secrets, err := cacheOf(mgr, c.options.Namespace, name)
		if err != nil {
			return err
		}
		if name == OwnSecret {
			k.own = secrets
		}
		if err := follow(ctx, secrets, take); err != nil {
			return err
		}
	}
	if err := mgr.Add(k); err != nil {
		return fmt.Errorf("adding the keeper of the operator's own certificate: %w", err)
	}
	return c.followCluster(ctx, mgr)
}

// cacheOf makes a cache of objects with one name, and has the manager start it on every replica.
// The manager does not wait for it.
func cacheOf(mgr ctrl.Manager, namespace, name string) (cache.Cache, error) {
	options := cache.Options{
		HTTPClient:           mgr.GetHTTPClient(),
		Scheme:               mgr.GetScheme(),
		Mapper:               mgr.GetRESTMapper(),
		DefaultFieldSelector: fields.OneTermEqualSelector("metadata.name", name),
		DefaultTransform:     cache.TransformStripManagedFields(),
	}
	if namespace != "" {
		options.DefaultNamespaces = map[string]cache.Config{namespace: {}}
	}
	made, err := cache.New(mgr.GetConfig(), options)
	if err != nil {
		return nil, fmt.Errorf("making a cache of %s: %w", name, err)
	}
	if err := mgr.Add(onEveryReplica{made}); err != nil {
		return nil, fmt.Errorf("adding a cache of %s: %w", name, err)
	}
	return made, nil
}

// onEveryReplica is a cache that does not wait for its replica to lead.
type onEveryReplica struct{ cache.Cache }

// NeedLeaderElection is for the manager.
func (onEveryReplica) NeedLeaderElection() bool { return false }

// follow hands on a Secret each time it is there anew, and nil when it is gone.
func follow(ctx context.Context, secrets cache.Cache, take func(*corev1.Secret)) error {
	informer, err := secrets.GetInformer(ctx, &corev1.Secret{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching a Secret: %w", err)
	}
	return handle(informer, func(object client.Object, gone bool) {
		secret, ok := object.(*corev1.Secret)
		if gone || !ok {
			secret = nil
		}
		take(secret)
	})
}

// handle calls a function for every object that is new, changed or gone.
func handle(informer cache.Informer, do func(object client.Object, gone bool)) error {
	call := func(object any, gone bool) {
		if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
			object = unknown.Obj
		}
		if o, ok := object.(client.Object); ok {
			do(o, gone)
		}
	}
	_, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { call(object, false) },
		UpdateFunc: func(_, object any) { call(object, false) },
		DeleteFunc: func(object any) { call(object, true) },
	})
	if err != nil {
		return fmt.Errorf("following a watch: %w", err)
	}
	return nil
}
