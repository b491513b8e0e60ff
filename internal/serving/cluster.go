package serving

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// profileCRD is the API that tells on OpenShift how to use TLS; profileObject is its one object.
	profileCRD    = "apiservers.config.openshift.io"
	profileObject = "cluster"
)

// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=apiservers.config.openshift.io,verbs=list;watch
// +kubebuilder:rbac:groups=config.openshift.io,resources=apiservers,resourceNames=cluster,verbs=list;watch

// clusterTLS follows what the cluster asks of TLS, on every replica. The API may come and go: it is
// watched while its CRD is there, and only the CRD otherwise.
type clusterTLS struct {
	certificates *Certificates
	crds         cache.Cache
	objects      cache.Cache
	wake         chan struct{}
	followed     bool
}

func (c *Certificates) followCluster(ctx context.Context, mgr ctrl.Manager) error {
	crds, err := cacheOf(mgr, "", profileCRD)
	if err != nil {
		return err
	}
	objects, err := cacheOf(mgr, "", profileObject)
	if err != nil {
		return err
	}
	f := &clusterTLS{certificates: c, crds: crds, objects: objects, wake: make(chan struct{}, 1)}
	informer, err := crds.GetInformer(ctx, crd(), cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching the CRD %s: %w", profileCRD, err)
	}
	if err := handle(informer, func(client.Object, bool) { f.signal() }); err != nil {
		return err
	}
	if err := mgr.Add(f); err != nil {
		return fmt.Errorf("adding what follows the cluster's TLS profile: %w", err)
	}
	return nil
}

func crd() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("apiextensions.k8s.io/v1")
	object.SetKind("CustomResourceDefinition")
	return object
}

func apiServer() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("config.openshift.io/v1")
	object.SetKind("APIServer")
	return object
}

// NeedLeaderElection is for the manager: every replica serves.
func (f *clusterTLS) NeedLeaderElection() bool { return false }

func (f *clusterTLS) signal() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// Start is for the manager.
func (f *clusterTLS) Start(ctx context.Context) error {
	var again <-chan time.Time
	retry := time.Second
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.wake:
		case <-again:
		}
		again = nil
		if err := f.adjust(ctx); err != nil {
			log.Info("The cluster's TLS profile cannot be read yet; trying again", "after", retry.String(), "error", err.Error())
			again = time.After(retry)
			retry = min(2*retry, slowestRetry)
		} else {
			retry = time.Second
		}
	}
}

// adjust begins or ends the watch of the profile, as its API came or went.
func (f *clusterTLS) adjust(ctx context.Context) error {
	there, err := f.served(ctx)
	if err != nil || there == f.followed {
		return err
	}
	if !there {
		if err := f.objects.RemoveInformer(ctx, apiServer()); err != nil {
			return fmt.Errorf("ending the watch of the TLS profile: %w", err)
		}
		f.followed = false
		f.certificates.takeProfile(tlsSettings{}, nil)
		return nil
	}
	informer, err := f.objects.GetInformer(ctx, apiServer(), cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching the TLS profile: %w", err)
	}
	f.followed = true
	return handle(informer, func(object client.Object, gone bool) {
		profile, ok := object.(*unstructured.Unstructured)
		if gone || !ok {
			f.certificates.takeProfile(tlsSettings{}, nil)
			return
		}
		f.certificates.takeProfile(settingsOf(profile.Object))
	})
}

// served says whether the API of the profile is there.
func (f *clusterTLS) served(ctx context.Context) (bool, error) {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("apiextensions.k8s.io/v1")
	list.SetKind("CustomResourceDefinitionList")
	if err := f.crds.List(ctx, list); err != nil {
		return false, fmt.Errorf("reading the CRD %s: %w", profileCRD, err)
	}
	for i := range list.Items {
		conditions, _, err := unstructured.NestedSlice(list.Items[i].Object, "status", "conditions")
		if err != nil {
			return false, fmt.Errorf("reading the CRD %s: %w", profileCRD, err)
		}
		for _, condition := range conditions {
			if m, ok := condition.(map[string]any); ok && m["type"] == "Established" && m["status"] == "True" {
				return list.Items[i].GetDeletionTimestamp() == nil, nil
			}
		}
	}
	return false, nil
}

// takeProfile has new connections use other settings.
func (c *Certificates) takeProfile(settings tlsSettings, err error) {
	c.mu.Lock()
	changed := !settings.equal(c.settings)
	c.settings = settings
	c.mu.Unlock()
	if err != nil {
		log.Error(err, "The TLS profile of the cluster is not understood; the metrics endpoint uses OpenShift's default, Intermediate", "object", profileCRD+"/"+profileObject)
	}
	if changed {
		log.Info("The metrics endpoint follows the cluster's TLS profile", "minimum", tlsVersion(settings.minVersion))
	}
}
