#!/usr/bin/env bash
# install_package.sh BUILD CMAKE CC CXX: installs BUILD into a scratch prefix, builds app/ against it and runs it.
set -euo pipefail
build=$1 cmake=$2 cc=$3 cxx=$4
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$cmake" --install "$build" --prefix "$work/prefix" >"$work/log" || { cat "$work/log"; exit 1; }
"$cmake" -S "$here/app" -B "$work/app" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx" >"$work/log"
"$cmake" --build "$work/app" >"$work/log" || { cat "$work/log"; exit 1; }
"$work/app/in_c"
"$work/app/in_cxx"
