package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

// folders makes a folder for each volume. They are `local` volumes and not hostPath ones, so the
// kubelet gives them to a pod's fsGroup, as it does with the disks of a real cluster.
type folders struct {
	root string
	node string
}

var _ controller.Provisioner = folders{}

// Provision makes the folder of a new volume.
func (f folders) Provision(_ context.Context, options controller.ProvisionOptions) (*core.PersistentVolume, controller.ProvisioningState, error) {
	claim := options.PVC.Spec
	if claim.VolumeMode != nil && *claim.VolumeMode == core.PersistentVolumeBlock {
		return nil, controller.ProvisioningFinished, fmt.Errorf("a folder can't be a block device: leave out volumeMode: Block")
	}
	path := f.path(options.PVName)
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, controller.ProvisioningFinished, fmt.Errorf("making the folder of a volume: %w", err)
	}
	// Apart from MkdirAll, whose mode the umask cuts: pods run under any user and must be able to write.
	if err := os.Chmod(path, 0o777); err != nil {
		return nil, controller.ProvisioningFinished, fmt.Errorf("opening the folder of a volume to every user: %w", err)
	}
	return &core.PersistentVolume{
		ObjectMeta: meta.ObjectMeta{Name: options.PVName},
		Spec: core.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: *options.StorageClass.ReclaimPolicy,
			AccessModes:                   claim.AccessModes,
			Capacity:                      core.ResourceList{core.ResourceStorage: claim.Resources.Requests[core.ResourceStorage]},
			VolumeMode:                    claim.VolumeMode,
			PersistentVolumeSource:        core.PersistentVolumeSource{Local: &core.LocalVolumeSource{Path: path}},
			NodeAffinity:                  f.onTheNode(),
		},
	}, controller.ProvisioningFinished, nil
}

// Delete removes the folder of a volume with all that is in it.
func (f folders) Delete(_ context.Context, volume *core.PersistentVolume) error {
	if err := os.RemoveAll(f.path(volume.Name)); err != nil {
		return fmt.Errorf("removing the folder of a volume: %w", err)
	}
	return nil
}

func (f folders) path(volume string) string { return filepath.Join(f.root, volume) }

func (f folders) onTheNode() *core.VolumeNodeAffinity {
	return &core.VolumeNodeAffinity{Required: &core.NodeSelector{
		NodeSelectorTerms: []core.NodeSelectorTerm{{
			MatchExpressions: []core.NodeSelectorRequirement{{
				Key: core.LabelHostname, Operator: core.NodeSelectorOpIn, Values: []string{f.node},
			}},
		}},
	}}
}
