package simnode

import (
	"context"
	"fmt"
	"log"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Kubelet is the kubelet of all simulated nodes together.
type Kubelet struct {
	client kubernetes.Interface
	nodes  map[string]bool
	hostIP string
	world  world

	namespaces corelisters.NamespaceLister
	addresses  atomic.Uint32

	mu      sync.Mutex
	workers map[types.UID]*worker
	running sync.WaitGroup
}

// Start makes count nodes and serves them until ctx ends; wait returns when everything has ended.
func Start(ctx context.Context, config *rest.Config, count int, hostIP string) (wait func(), err error) {
	config = rest.CopyConfig(config)
	config.UserAgent = "simnode"
	config.QPS, config.Burst = -1, -1 // limited by the API server alone
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the client of the simulated nodes: %w", err)
	}
	k := &Kubelet{client: client, nodes: map[string]bool{}, hostIP: hostIP, workers: map[types.UID]*worker{}}
	for i := range count {
		k.nodes[nodeName(i)] = true
	}
	if err := k.watch(ctx); err != nil {
		return nil, err
	}
	if err := k.startVolumes(ctx); err != nil {
		return nil, err
	}
	if err := k.startNodes(ctx); err != nil {
		return nil, err
	}
	return k.running.Wait, nil
}

// watch starts the informers and returns when they hold the present state.
func (k *Kubelet) watch(ctx context.Context) error {
	shared := informers.NewSharedInformerFactory(k.client, 0)
	secrets, configMaps := shared.Core().V1().Secrets(), shared.Core().V1().ConfigMaps()
	k.namespaces = shared.Core().V1().Namespaces().Lister()
	k.world = world{secrets: secretKeys(secrets.Lister()), configMaps: configMapKeys(configMaps.Lister())}
	poke := cache.ResourceEventHandlerFuncs{
		AddFunc:    k.pokeNamespace,
		UpdateFunc: func(_, object any) { k.pokeNamespace(object) },
	}
	for _, informer := range []cache.SharedIndexInformer{secrets.Informer(), configMaps.Informer()} {
		if _, err := informer.AddEventHandler(poke); err != nil {
			return fmt.Errorf("watching what pods refer to: %w", err)
		}
	}
	shared.Start(ctx.Done())
	shared.WaitForCacheSync(ctx.Done())

	bound := informers.NewSharedInformerFactoryWithOptions(k.client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermNotEqualSelector("spec.nodeName", "").String()
	}))
	_, err := bound.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { k.serve(ctx, object) },
		UpdateFunc: func(_, object any) { k.serve(ctx, object) },
		DeleteFunc: k.forget,
	})
	if err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	bound.Start(ctx.Done())
	bound.WaitForCacheSync(ctx.Done())
	return ctx.Err()
}

// serve hands the latest form of a pod to its worker.
func (k *Kubelet) serve(ctx context.Context, object any) {
	pod, ok := object.(*corev1.Pod)
	if !ok || !k.nodes[pod.Spec.NodeName] {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	w := k.workers[pod.UID]
	if w == nil {
		ctx, cancel := context.WithCancel(ctx)
		w = &worker{kubelet: k, changed: make(chan struct{}, 1), cancel: cancel}
		k.workers[pod.UID] = w
		w.pod.Store(pod)
		k.running.Go(func() { w.run(ctx) })
		return
	}
	w.pod.Store(pod)
	w.poke()
}

func (k *Kubelet) forget(object any) {
	if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if w := k.workers[pod.UID]; w != nil {
		w.cancel()
		delete(k.workers, pod.UID)
	}
}

// pokeNamespace lets the pods that wait for something in the object's namespace look again.
func (k *Kubelet) pokeNamespace(object any) {
	accessor, ok := object.(metav1.Object)
	if !ok {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, w := range k.workers {
		if pod := w.pod.Load(); pod.Namespace == accessor.GetNamespace() && pod.Status.Phase == corev1.PodPending {
			w.poke()
		}
	}
}

func (k *Kubelet) manual(pod *corev1.Pod) bool {
	if pod.Annotations[ManualAnnotation] == "true" {
		return true
	}
	namespace, err := k.namespaces.Get(pod.Namespace)
	return err == nil && namespace.Annotations[ManualAnnotation] == "true"
}

func (k *Kubelet) nextPodIP() string {
	n := k.addresses.Add(1)
	return fmt.Sprintf("10.244.%d.%d", n/250%256, n%250+1)
}

// warn writes an Event about a pod, as a kubelet does for what keeps a pod from running.
func (k *Kubelet) warn(ctx context.Context, pod *corev1.Pod, w warning) error {
	now := metav1.NewTime(time.Now())
	_, err := k.client.CoreV1().Events(pod.Namespace).Create(ctx, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{GenerateName: pod.Name + ".", Namespace: pod.Namespace},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
		},
		Type: corev1.EventTypeWarning, Reason: w.reason, Message: w.message, Count: 1,
		FirstTimestamp: now, LastTimestamp: now,
		Source: corev1.EventSource{Component: "kubelet", Host: pod.Spec.NodeName},
	}, metav1.CreateOptions{})
	if err != nil && !gone(err) {
		k.log("writing an Event of pod", pod, err)
	}
	return nil // an Event that is lost is lost, as with a kubelet
}

func (k *Kubelet) log(doing string, pod *corev1.Pod, err error) {
	log.Printf("simulated node: %s %s/%s: %v", doing, pod.Namespace, pod.Name, err)
}

func secretKeys(lister corelisters.SecretLister) lookup {
	return func(namespace, name string) (map[string]bool, bool) {
		secret, err := lister.Secrets(namespace).Get(name)
		if err != nil {
			return nil, false
		}
		keys := map[string]bool{}
		for key := range secret.Data {
			keys[key] = true
		}
		return keys, true
	}
}

func configMapKeys(lister corelisters.ConfigMapLister) lookup {
	return func(namespace, name string) (map[string]bool, bool) {
		configMap, err := lister.ConfigMaps(namespace).Get(name)
		if err != nil {
			return nil, false
		}
		keys := map[string]bool{}
		for key := range configMap.Data {
			keys[key] = true
		}
		for key := range configMap.BinaryData {
			keys[key] = true
		}
		return keys, true
	}
}
