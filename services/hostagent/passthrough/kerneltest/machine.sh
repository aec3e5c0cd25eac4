#!/bin/sh
# Tests the agent's own code against a real kernel's VFIO, in a machine that
# QEMU emulates with an IOMMU: no GPU and no KVM are needed. The tests of this
# folder are the machine's first process.
#
#   machine.sh FOLDER [TEST FLAG...]   keeps kernel and modules in FOLDER
set -eu
cd "$(dirname "$0")"
work=$1
shift
flags="-test.v -test.timeout 160s $*"
set --
mkdir -p "$work"
work=$(cd "$work" && pwd)

install() {
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends "$@" >/dev/null
  else
    echo "make test-vfio needs the Debian packages $*: install them and run it again" >&2
    exit 1
  fi
}

for tool in qemu-system-x86_64:qemu-system-x86 cpio:cpio depmod:kmod; do
  PATH=$PATH:/sbin:/usr/sbin command -v "${tool%:*}" >/dev/null || set -- "$@" "${tool#*:}"
done
[ $# = 0 ] || install "$@"
PATH=$PATH:/sbin:/usr/sbin

# The kernel is Debian's newest, as it comes, with the modules that are needed.
if [ ! -e "$work/vmlinuz" ]; then
  package=$(apt-cache depends linux-image-amd64 2>/dev/null | sed -n 's/.*Depends: \(linux-image-[^ ]*\).*/\1/p' | head -n 1)
  [ -n "$package" ] || { install kmod; package=$(apt-cache depends linux-image-amd64 | sed -n 's/.*Depends: \(linux-image-[^ ]*\).*/\1/p' | head -n 1); }
  rm -rf "$work/deb" "$work/root"
  mkdir -p "$work/deb" "$work/root"
  (cd "$work/deb" && apt-get -qq download "$package" 2>/dev/null && dpkg -x ./*.deb .)
  release=${package#linux-image-}
  modules=lib/modules/$release
  depmod -b "$work/deb" "$release"
  for name in vfio-pci vfio_iommu_type1 nvme snd-hda-intel; do
    grep "/$name\.ko" "$work/deb/$modules/modules.dep" | grep "^[^:]*/$name\.ko" | tr -d : | tr ' ' '\n'
  done | sort -u >"$work/deb/list"
  while read -r file; do
    mkdir -p "$work/root/$modules/$(dirname "$file")"
    cp "$work/deb/$modules/$file" "$work/root/$modules/$file"
  done <"$work/deb/list"
  cp "$work/deb/$modules/modules.dep" "$work/deb/$modules/modules.alias" "$work/root/$modules/"
  cp "$work/deb/boot/vmlinuz-$release" "$work/vmlinuz.new"
  rm -rf "$work/deb"
  mv "$work/vmlinuz.new" "$work/vmlinuz"
fi

CGO_ENABLED=0 go test -c -o "$work/root/init" .
(cd "$work/root" && find . | cpio -o -H newc --quiet) >"$work/initramfs"

# Two cards behind root ports of their own: one of two functions, as a GPU with
# audio has them, and one by itself.
status=0
timeout 170 qemu-system-x86_64 -accel tcg,thread=multi -cpu max -machine q35,kernel-irqchip=split -m 1024 -smp 2 \
  -device intel-iommu,intremap=on,caching-mode=on -device isa-debug-exit,iobase=0x501,iosize=1 \
  -nodefaults -display none -no-reboot -serial stdio \
  -device pcie-root-port,id=rp1,chassis=1,slot=1 -device nvme,serial=one,bus=rp1,addr=0.0,multifunction=on -device intel-hda,bus=rp1,addr=0.1 \
  -device pcie-root-port,id=rp2,chassis=2,slot=2 -device nvme,serial=two,bus=rp2 \
  -kernel "$work/vmlinuz" -initrd "$work/initramfs" \
  -append "console=ttyS0 intel_iommu=on no_timer_check panic=-1 quiet -- $flags" </dev/null || status=$?
# The machine says by its exit device that all tests passed; any other status is
# a failure, a crash, or the time that ran out.
if [ $status != 33 ]; then
  echo "make test-vfio: failed (status $status)" >&2
  exit 1
fi
