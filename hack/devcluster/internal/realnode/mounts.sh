# Makes the mount namespace of a node; run once inside it. $1 is the cluster's folder,
# $2 the one of its namespaces.

# Copies of other clusters' namespace files would keep those alive after their end.
umount --all --lazy --types nsfs

# Programs with fixed folders (/run/containerd, /var/lib/kubelet, /var/log/containers, ...) get private
# ones in memory. The cluster's own folder stays as it is, wherever it lies: relative paths go on
# working when /run or /var/lib above them is covered.
mount -t tmpfs -o mode=0755 devcluster "$2"
cd "$2"
mkdir run log upper work cluster
mount --bind "$1" cluster
mount -t overlay -o lowerdir=/var/lib,upperdir=upper,workdir=work devcluster /var/lib
mount --bind log /var/log
mount --bind run /run
mkdir -p "$1"
mount --bind cluster "$1"

# The kubelet sets these to its liking for the whole machine; it gets copies to write to.
for setting in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops \
    kernel/keys/root_maxkeys kernel/keys/root_maxbytes; do
  copy=$(echo "$setting" | tr / .)
  cat "/proc/sys/$setting" > "$copy"
  mount --bind "$copy" "/proc/sys/$setting"
done

# Pods may mount folders with either direction of propagation, which needs a shared root.
mount --make-rshared /
