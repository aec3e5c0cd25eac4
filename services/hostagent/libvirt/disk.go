package libvirt

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	rpc "github.com/digitalocean/go-libvirt"
	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/iso9660"
	"libvirt.org/go/libvirtxml"

	"berth/services/agentapi"
	"berth/services/hostagent"
)

// volumes is libvirt's storage as far as the driver uses it.
type volumes interface {
	StoragePoolLookupByName(string) (rpc.StoragePool, error)
	StorageVolLookupByName(rpc.StoragePool, string) (rpc.StorageVol, error)
	StorageVolGetXMLDesc(rpc.StorageVol, uint32) (string, error)
	StorageVolCreateXML(rpc.StoragePool, string, rpc.StorageVolCreateFlags) (rpc.StorageVol, error)
	StorageVolUpload(rpc.StorageVol, io.Reader, uint64, uint64, rpc.StorageVolUploadFlags) error
	StorageVolDelete(rpc.StorageVol, rpc.StorageVolDeleteFlags) error
}

// store makes and deletes the volumes of VMs in one pool.
type store struct {
	link *link
	pool string
	size uint64 // bytes of a disk at least; 0: as its image
}

// diskOf and seedOf name a VM's volumes.
func diskOf(vm string) string { return vm + ".qcow2" }
func seedOf(vm string) string { return vm + "-seed.iso" }

// disks are where a VM's volumes lie.
type disks struct{ disk, seed string }

// create makes a VM's disk as an overlay of its image, and the seed by which
// cloud-init knows the VM. Volumes that are there already stay: a disk that
// moved here, or a step that is repeated.
func (s *store) create(ctx context.Context, want agentapi.DesiredVM) (disks, error) {
	pool, err := s.find(ctx)
	if err != nil {
		return disks{}, err
	}
	disk, err := s.volume(ctx, pool, diskOf(want.ID))
	if is(err, rpc.ErrNoStorageVol) {
		disk, err = s.overlay(ctx, pool, want)
	}
	if err != nil {
		return disks{}, fmt.Errorf("disk of %s: %w", want.ID, err)
	}
	seed, err := s.volume(ctx, pool, seedOf(want.ID))
	if is(err, rpc.ErrNoStorageVol) {
		seed, err = s.seed(ctx, pool, want)
	}
	if err != nil {
		return disks{}, fmt.Errorf("seed of %s: %w", want.ID, err)
	}
	return disks{disk: disk.Key, seed: seed.Key}, nil
}

func (s *store) find(ctx context.Context) (rpc.StoragePool, error) {
	pool, err := ask(ctx, s.link, func(to daemon) (rpc.StoragePool, error) { return to.StoragePoolLookupByName(s.pool) })
	if is(err, rpc.ErrNoStoragePool) {
		return pool, hostagent.Block(agentapi.ProblemUnsupported, "", "libvirt has no storage pool %s", s.pool)
	}
	return pool, err
}

func (s *store) volume(ctx context.Context, pool rpc.StoragePool, name string) (rpc.StorageVol, error) {
	return ask(ctx, s.link, func(to daemon) (rpc.StorageVol, error) { return to.StorageVolLookupByName(pool, name) })
}

// overlay makes a disk that holds only what differs from the image.
func (s *store) overlay(ctx context.Context, pool rpc.StoragePool, want agentapi.DesiredVM) (rpc.StorageVol, error) {
	var none rpc.StorageVol
	image, err := s.volume(ctx, pool, want.Image)
	for _, suffix := range []string{".qcow2", ".raw", ".img"} {
		if is(err, rpc.ErrNoStorageVol) {
			image, err = s.volume(ctx, pool, want.Image+suffix)
		}
	}
	if is(err, rpc.ErrNoStorageVol) {
		return none, hostagent.Block(agentapi.ProblemUnsupported, "", "pool %s of this host has no image %s", s.pool, want.Image)
	}
	if err != nil {
		return none, err
	}
	raw, err := ask(ctx, s.link, func(to daemon) (string, error) { return to.StorageVolGetXMLDesc(image, 0) })
	if err != nil {
		return none, err
	}
	var base libvirtxml.StorageVolume
	if err := base.Unmarshal(raw); err != nil {
		return none, fmt.Errorf("describe image %s: %w", want.Image, err)
	}
	return s.make(ctx, pool, libvirtxml.StorageVolume{
		Name:     diskOf(want.ID),
		Capacity: &libvirtxml.StorageVolumeSize{Unit: "bytes", Value: max(base.Capacity.Value, s.size)},
		Target:   &libvirtxml.StorageVolumeTarget{Format: &libvirtxml.StorageVolumeTargetFormat{Type: "qcow2"}},
		BackingStore: &libvirtxml.StorageVolumeBackingStore{
			Path: base.Target.Path, Format: &libvirtxml.StorageVolumeTargetFormat{Type: base.Target.Format.Type},
		},
	})
}

func (s *store) make(ctx context.Context, pool rpc.StoragePool, v libvirtxml.StorageVolume) (rpc.StorageVol, error) {
	raw, err := v.Marshal()
	if err != nil {
		return rpc.StorageVol{}, fmt.Errorf("describe volume %s: %w", v.Name, err)
	}
	return ask(ctx, s.link, func(to daemon) (rpc.StorageVol, error) { return to.StorageVolCreateXML(pool, raw, 0) })
}

// seed makes the volume that cloud-init reads at the first boot.
func (s *store) seed(ctx context.Context, pool rpc.StoragePool, want agentapi.DesiredVM) (rpc.StorageVol, error) {
	image, err := seedImage(want)
	if err != nil {
		return rpc.StorageVol{}, err
	}
	size := uint64(len(image))
	vol, err := s.make(ctx, pool, libvirtxml.StorageVolume{
		Name:     seedOf(want.ID),
		Capacity: &libvirtxml.StorageVolumeSize{Unit: "bytes", Value: size},
		Target:   &libvirtxml.StorageVolumeTarget{Format: &libvirtxml.StorageVolumeTargetFormat{Type: "raw"}},
	})
	if err != nil {
		return vol, err
	}
	err = tell(ctx, s.link, func(to daemon) error { return to.StorageVolUpload(vol, bytes.NewReader(image), 0, size, 0) })
	if err != nil { // half a seed would be taken for a whole one
		_ = tell(context.WithoutCancel(ctx), s.link, func(to daemon) error { return to.StorageVolDelete(vol, 0) })
	}
	return vol, err
}

// seedImage writes what cloud-init's NoCloud source reads: a file system named
// cidata with two files.
func seedImage(want agentapi.DesiredVM) ([]byte, error) {
	meta := map[string]any{"instance-id": want.ID, "local-hostname": want.ID}
	if want.SSHKey != "" {
		meta["public-keys"] = []string{want.SSHKey}
	}
	metaData, err := json.Marshal(meta) // YAML, too
	if err != nil {
		return nil, fmt.Errorf("write meta-data: %w", err)
	}
	userData := want.UserData
	if userData == "" {
		userData = "#cloud-config\n{}\n"
	}
	dir, err := os.MkdirTemp("", "berth-seed-")
	if err != nil {
		return nil, fmt.Errorf("write a seed: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	image := filepath.Join(dir, "seed.iso")
	if err := writeISO(image, map[string][]byte{"meta-data": metaData, "user-data": []byte(userData)}); err != nil {
		return nil, fmt.Errorf("write a seed: %w", err)
	}
	return os.ReadFile(image) //nolint:gosec // in a folder of our own
}

func writeISO(image string, files map[string][]byte) error {
	out, err := os.Create(image) //nolint:gosec // in a folder of our own
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }()
	fs, err := iso9660.Create(file.New(out, false), 0, 0, 0, "")
	if err != nil {
		return err
	}
	for name, text := range files {
		f, err := fs.OpenFile(name, os.O_CREATE|os.O_RDWR)
		if err != nil {
			return err
		}
		if _, err := f.Write(text); err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	// The format wants blanks behind the name, which the library leaves to us.
	return fs.Finalize(iso9660.FinalizeOptions{RockRidge: true, VolumeIdentifier: fmt.Sprintf("%-32s", "cidata")})
}

// remove deletes a VM's volumes, those that are there.
func (s *store) remove(ctx context.Context, vm string) error {
	pool, err := s.find(ctx)
	if err != nil {
		return err
	}
	for _, name := range []string{diskOf(vm), seedOf(vm)} {
		vol, err := s.volume(ctx, pool, name)
		if is(err, rpc.ErrNoStorageVol) {
			continue
		}
		if err == nil {
			err = tell(ctx, s.link, func(to daemon) error { return to.StorageVolDelete(vol, 0) })
		}
		if err != nil {
			return fmt.Errorf("delete volume %s: %w", name, err)
		}
	}
	return nil
}
