# SPDX-License-Identifier: Apache-2.0
# Sourced by the scripts: the project's root, where the tools are, and how to speak.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
# The compiler's cache knows a source by its place in the tree, so a clone elsewhere finds what is there.
export CCACHE_BASEDIR=$root

if [[ -t 1 && -z ${NO_COLOR:-} ]]; then
  bold=$'\e[1m' red=$'\e[31m' green=$'\e[32m' plain=$'\e[0m'
else
  bold='' red='' green='' plain=''
fi

# say TEXT: one line about what happens now.
say() { printf '%s==>%s %s\n' "$bold" "$plain" "$*"; }

# fail TEXT: says what to change and stops.
fail() {
  printf '%serror:%s %s\n' "$red" "$plain" "$*" >&2
  exit 1
}

# up_to_date STAMP FILE...: whether STAMP holds the hash of the files' contents.
up_to_date() { [[ -f $1 && $(<"$1") == "$(contents_hash "${@:2}")" ]]; }

# contents_hash FILE...: one hash of the files' contents.
contents_hash() { cat "$@" | sha256sum | cut -d ' ' -f 1; }

# spark_home VENV: where pip put Spark.
spark_home() { echo "$root/$1"/lib/python3*/site-packages/pyspark; }

# use_spark VENV: environment for Spark's own scripts and for tests, on this machine alone.
use_spark() {
  SPARK_HOME=$(spark_home "$1")
  [[ -d $SPARK_HOME/jars ]] || fail "no Spark in $root/$1; run tools/setup first"
  export SPARK_HOME SPARK_LOCAL_IP=127.0.0.1
  export PYSPARK_PYTHON="$root/$1/bin/python" PYSPARK_DRIVER_PYTHON="$root/$1/bin/python"
}

# use_class_archive VENV: JVMs of its Spark map their classes from an archive (tools/class_archive), made once.
# After use_java and use_spark. JVMs that do without it would log so on their standard output.
use_class_archive() {
  local archive=$root/build/class-archives/$1.jsa log=$root/build/class-archive.log
  local classes_of=("$JAVA_HOME/release" "$root/$1/installed.sha256")
  if ! up_to_date "$archive.sha256" "${classes_of[@]}"; then
    say "archiving the classes of Spark in $1"
    if "$root/$1/bin/python" "$root/tools/class_archive" "$archive" &>"$log"; then
      contents_hash "${classes_of[@]}" >"$archive.sha256"
    else
      say "there is no archive (see $log): JVMs start more slowly"
    fi
  fi
  export JDK_JAVA_OPTIONS="${JDK_JAVA_OPTIONS:-} -XX:SharedArchiveFile=\"$archive\" -Xlog:cds=off -Xlog:cds+dynamic=off"
}

# A JDK 17 wherever the distribution puts it: other JDKs may come first in PATH.
use_java() {
  local home
  for home in ${JAVA_HOME:+"$JAVA_HOME"} /usr/lib/jvm/java-17-openjdk-*; do
    if [[ -x $home/bin/javac && $("$home/bin/javac" -version 2>&1) == "javac 17."* ]]; then
      export JAVA_HOME=$home PATH="$home/bin:$PATH"
      return
    fi
  done
  fail "no JDK 17 found; install openjdk-17-jdk-headless or set JAVA_HOME to one"
}

# compat_jar LINE: the jar of what is written in Scala, for a line of it.
compat_jar() { echo "jvm/compat/target/$1/cafetiere-compat_$1.jar"; }

# make_venv FOLDER REQUIREMENTS [REQUIREMENTS WITHOUT DEPENDENCIES]: Python packages, where the files have changed.
# One process at a time; the others find what it has made.
make_venv() {
  local venv=$root/$1 stamp=$root/$1/installed.sha256 with=$root/tools/$2 without=${3:+$root/tools/$3}
  (
    flock 9
    up_to_date "$stamp" "$with" ${without:+"$without"} && exit
    say "installing Python packages into $1: $(grep -hv '^#' "$with" ${without:+"$without"} | tr '\n' ' ')"
    # A run that was interrupted may have left an interpreter without pip.
    "$venv/bin/python" -m pip --version &>/dev/null || python3 -m venv --clear "$venv"
    "$venv/bin/python" -m pip install -q --disable-pip-version-check -r "$with"
    if [[ -n $without ]]; then
      "$venv/bin/python" -m pip install -q --disable-pip-version-check --no-deps -r "$without"
    fi
    contents_hash "$with" ${without:+"$without"} >"$stamp"
  ) 9<"$with"
}

# install_packages PACKAGE...: the distribution's packages that are missing.
install_packages() {
  local missing=() package
  for package in "$@"; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] ||
      missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  local as_root=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null ||
      fail "these packages are missing and there is no sudo; as root, run: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  say "installing with apt: ${missing[*]}"
  "${as_root[@]}" apt-get update -q
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends "${missing[@]}"
}

# project_field NAME: what project.toml says of the project, such as its version.
project_field() { sed -n "s/^$1 = \"\(.*\)\"\$/\1/p" "$root/project.toml"; }

# java_pages FOLDER: the Javadoc of what users' programs name; the rest is looked up in built classes, as
# javadoc of Java 17 ends with an error where it meets a type of a package that it is not to show.
java_pages() {
  local generated=$root/jvm/spark/target/generated-sources/params package
  local sources=()
  "$root/tools/params" java "$generated"
  for package in spark spark/{cost,explain,ml,preprocess} core core/{hdf5,image,net,score,table}; do
    mapfile -t -O "${#sources[@]}" sources < <(find "$root"/jvm/{core,spark}/src/main/java/cafetiere/$package \
      "$generated/cafetiere/$package" -maxdepth 1 -name '*.java' 2>/dev/null | LC_ALL=C sort)
  done
  javadoc -quiet -notimestamp -public -Xdoclint:none -encoding UTF-8 --release 17 \
    -windowtitle "Cafetiere $(project_field version)" -sourcepath "$root/docs" \
    -classpath "$root/jvm/core/target/classes:$root/jvm/spark/target/classes:$(spark_home .venv)/jars/*" \
    -d "$1" "${sources[@]}"
}

# native_build ARCHITECTURE: the CMake build whose library and program ship for it.
native_build() { if [[ $1 == "$(uname -m)" ]]; then echo build/release; else echo build/arm64; fi; }

# write_legal FOLDER: what goes with every copy of the native library.
write_legal() {
  cp "$root"/{LICENSE,NOTICE} "$1"
  "$root/.venv/bin/python" "$root/tools/third_party" notices "$1/THIRD-PARTY-NOTICES"
  "$root/.venv/bin/python" "$root/tools/third_party" sbom "$1/cafetiere.cdx.json" \
    --version "$(project_field version)"
}
