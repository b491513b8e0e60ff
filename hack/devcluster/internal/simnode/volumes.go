package simnode

import (
	"context"
	"fmt"
	"log"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
)

const (
	storageClass  = "standard"
	provisioner   = "simnode.ambient-code.io/volumes"
	volumeWorkers = 8
)

// volume is a claim to provision for, or a released volume to delete: one of both is set.
type volume struct {
	claim  cache.ObjectName
	volume string
}

// startVolumes makes the default StorageClass and serves it: a volume for each new claim, and the
// end of each volume whose claim is gone.
func (k *Kubelet) startVolumes(ctx context.Context) error {
	if err := k.createStorageClass(ctx); err != nil {
		return err
	}
	shared := informers.NewSharedInformerFactory(k.client, 0)
	claims, volumes := shared.Core().V1().PersistentVolumeClaims(), shared.Core().V1().PersistentVolumes()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[volume]())
	enqueueClaim := func(object any) {
		if claim, ok := object.(*corev1.PersistentVolumeClaim); ok && wantsVolume(claim) {
			queue.Add(volume{claim: cache.MetaObjectToName(claim)})
		}
	}
	enqueueVolume := func(object any) {
		if v, ok := object.(*corev1.PersistentVolume); ok && v.Spec.StorageClassName == storageClass && v.Status.Phase == corev1.VolumeReleased {
			queue.Add(volume{volume: v.Name})
		}
	}
	for informer, enqueue := range map[cache.SharedIndexInformer]func(any){claims.Informer(): enqueueClaim, volumes.Informer(): enqueueVolume} {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: enqueue, UpdateFunc: func(_, object any) { enqueue(object) }})
		if err != nil {
			return fmt.Errorf("watching volumes: %w", err)
		}
	}
	shared.Start(ctx.Done())
	shared.WaitForCacheSync(ctx.Done())
	k.running.Go(func() { <-ctx.Done(); queue.ShutDown() })
	for range volumeWorkers {
		k.running.Go(func() { k.serveVolumes(ctx, queue) })
	}
	return nil
}

func (k *Kubelet) createStorageClass(ctx context.Context) error {
	_, err := k.client.StorageV1().StorageClasses().Create(ctx, &storagev1.StorageClass{
		ObjectMeta:  metav1.ObjectMeta{Name: storageClass, Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}},
		Provisioner: provisioner,
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("making the default StorageClass: %w", err)
	}
	return nil
}

func wantsVolume(claim *corev1.PersistentVolumeClaim) bool {
	return ptr.Deref(claim.Spec.StorageClassName, "") == storageClass && claim.Spec.VolumeName == "" && claim.DeletionTimestamp == nil
}

func (k *Kubelet) serveVolumes(ctx context.Context, queue workqueue.TypedRateLimitingInterface[volume]) {
	for {
		item, shutDown := queue.Get()
		if shutDown {
			return
		}
		err := k.provision(ctx, item)
		if err != nil && ctx.Err() == nil {
			log.Printf("simulated node: %v", err)
			queue.AddRateLimited(item)
		} else {
			queue.Forget(item)
		}
		queue.Done(item)
	}
}

func (k *Kubelet) provision(ctx context.Context, item volume) error {
	if item.volume != "" {
		err := k.client.CoreV1().PersistentVolumes().Delete(ctx, item.volume, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting volume %s: %w", item.volume, err)
		}
		return nil
	}
	claim, err := k.client.CoreV1().PersistentVolumeClaims(item.claim.Namespace).Get(ctx, item.claim.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && !wantsVolume(claim) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading claim %s: %w", item.claim, err)
	}
	_, err = k.client.CoreV1().PersistentVolumes().Create(ctx, volumeFor(claim), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("making a volume for claim %s: %w", item.claim, err)
	}
	return nil
}

// volumeFor is a volume that only this claim can bind. Nothing ever opens its path.
func volumeFor(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	name := "pvc-" + string(claim.UID)
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": provisioner}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			AccessModes:                   claim.Spec.AccessModes,
			VolumeMode:                    claim.Spec.VolumeMode,
			StorageClassName:              storageClass,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name,
				UID: claim.UID, ResourceVersion: claim.ResourceVersion,
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: "/simulated/" + name},
			},
		},
	}
}
