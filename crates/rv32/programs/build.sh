#!/bin/sh
# Compiles the programs of this folder into built/.
#
#   build.sh           replaces the files of built/
#   build.sh --check   compiles into a temporary folder and compares the files byte by byte
#
# The compiler is clang in the Python package "ziglang" of the version below, which is looked for in $ZIGLANG, a folder
# (default: target/ziglang in the checkout), and installed there if it is missing. It unpacks to about 400 MB.

set -eu

VERSION=0.17.1
folder=$(cd "$(dirname "$0")" && pwd)
ziglang=${ZIGLANG:-$folder/../../../target/ziglang}
mkdir -p "$ziglang"
ziglang=$(cd "$ziglang" && pwd)

case "${1-}" in
"") output=$folder/built ;;
--check)
    output=$(mktemp -d)
    trap 'rm -rf "$output"' EXIT
    ;;
*)
    echo "build.sh: unknown option $1; use --check or nothing" >&2
    exit 2
    ;;
esac

if [ ! -d "$ziglang/ziglang-$VERSION.dist-info" ]; then
    python3 -m pip install --quiet --upgrade --target "$ziglang" "ziglang==$VERSION"
fi

# Nothing of the build depends on the place of the checkout: paths are relative, and no debug information is kept.
cd "$folder"
export PYTHONPATH="$ziglang" ZIG_GLOBAL_CACHE_DIR="$ziglang/cache"
mkdir -p "$output"
for source in *.c; do
    name=${source%.c}
    python3 -m ziglang cc -target riscv32-freestanding-none -mcpu=generic_rv32+m \
        -std=c11 -O2 -Wall -Wextra -Werror -Wno-unused-command-line-argument \
        -ffreestanding -nostdlib -static -fno-pic -fno-builtin \
        -fno-sanitize=all -fno-stack-protector -fno-unwind-tables -fno-asynchronous-unwind-tables \
        -ffunction-sections -fdata-sections -Wl,--gc-sections -Wl,--build-id=none -Wl,-s \
        -Wl,--nmagic -Wl,-T,link.ld -o "$output/$name.elf" start.s "$source"
    chmod 644 "$output/$name.elf"
done

if [ "$output" != "$folder/built" ]; then
    for built in "$folder"/built/*.elf "$output"/*.elf; do
        name=$(basename "$built")
        cmp "$folder/built/$name" "$output/$name"
    done
    echo "build.sh: the files of built/ are those of the sources"
fi
