#!/bin/sh
# root.sh FOLDER COMMAND...: runs COMMAND with /www, /downloads, /certs and /logs of its own, and /etc/hosts: those of FOLDER.
#
# The root is put together anew, in the mount namespace that each program of a laboratory has: nothing is changed outside, and
# nothing is left.
set -eu
folder=$1
shift
new=$folder/root
mount -t tmpfs -o mode=755,size=1m airloom "$new"
for entry in /*; do
    name=${entry#/}
    case $name in www | downloads | certs | logs) continue ;; esac
    if [ -L "$entry" ]; then
        cp -P "$entry" "$new/$name"
    elif [ -d "$entry" ]; then
        mkdir "$new/$name"
        mount --rbind "$entry" "$new/$name"
    fi
done
for name in www downloads certs logs; do
    mkdir "$new/$name"
    mount --bind "$folder/$name" "$new/$name"
done
mount --bind "$folder/hosts" "$new/etc/hosts"
exec chroot "$new" "$@"
