#!/bin/sh
# Puts Apache Jena and the jars that it needs into a folder, unless it is installed.
# They are Debian's packages, unpacked and not installed: nothing outside of the folder changes.
set -eu

FOLDER=$1
PACKAGES="libapache-jena-java libcommons-cli-java libcommons-codec-java libcommons-compress-java libcommons-csv-java
    libcommons-io-java libcommons-lang3-java libdexx-java libgoogle-gson-java libguava-java libhttpclient-java
    libhttpcore-java libjackson2-annotations-java libjackson2-core-java libjackson2-databind-java libjsonld-java
    libjsonp2-java libprotobuf-java libslf4j-java libthrift-java libtitanium-json-ld-java"

if [ -e /usr/share/java/jena-core.jar ] || [ -e "$FOLDER/.ready" ]; then exit 0; fi
command -v javac >/dev/null && command -v apt-get >/dev/null && command -v dpkg >/dev/null

mkdir -p "$FOLDER/packages"
(cd "$FOLDER/packages" && apt-get download $PACKAGES) >/dev/null 2>&1
for package in "$FOLDER"/packages/*.deb; do dpkg -x "$package" "$FOLDER"; done
touch "$FOLDER/.ready"
