#!/bin/sh
# Puts mosquitto and redis-server into a folder, with the libraries that they need, unless they are installed.
# They are Debian's packages, unpacked and not installed: nothing outside of the folder changes.
set -eu

FOLDER=$1
PACKAGES="mosquitto mosquitto-clients libmosquitto1 libcjson1 libdlt2 libwrap0 libev4 libwebsockets17
    redis-server redis-tools libatomic1 libjemalloc2 liblzf1"

if command -v mosquitto >/dev/null && command -v redis-server >/dev/null; then exit 0; fi
if [ -e "$FOLDER/.ready" ]; then exit 0; fi
command -v apt-get >/dev/null && command -v dpkg >/dev/null

mkdir -p "$FOLDER/packages"
(cd "$FOLDER/packages" && apt-get download $PACKAGES) >/dev/null 2>&1
for package in "$FOLDER"/packages/*.deb; do dpkg -x "$package" "$FOLDER"; done
touch "$FOLDER/.ready"
