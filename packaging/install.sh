#!/bin/sh
# Installs pmk-host from where its packages are: a folder, or an address. Nothing is installed whose checksum is wrong.
set -eu

usage() {
    cat <<'USAGE'
usage: install.sh [--from DIR|URL] [--prefix DIR] [--version VERSION]

  --from DIR|URL     where SHA256SUMS and the tarballs are; the folder of this script unless told
  --prefix DIR       where to: DIR/bin/pmk-host and DIR/share; ~/.local unless told
  --version VERSION  which, where there are several
USAGE
}

fail() {
    echo "error: $1" >&2
    [ $# -lt 2 ] || echo "  hint: $2" >&2
    exit 1
}

from=$(dirname "$0")
prefix="${HOME:-}/.local"
version='[^/]*'
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) usage && exit 0 ;;
    --from | --prefix | --version) [ $# -gt 1 ] || { usage >&2 && exit 2; } ;;
    *) usage >&2 && exit 2 ;;
    esac
    case $1 in
    --from) from=$2 ;;
    --prefix) prefix=$2 ;;
    --version)
        case $2 in '' | *[!0-9A-Za-z.-]*) fail "$2 is no version" "one is 1.2.3" ;; esac
        version=$2
        ;;
    esac
    shift 2
done
case $prefix in /*) ;; *) prefix=$PWD/$prefix ;; esac

case $(uname -s)/$(uname -m) in
Linux/x86_64 | Linux/amd64) target=x86_64-unknown-linux-gnu ;;
Linux/aarch64 | Linux/arm64) target=aarch64-unknown-linux-gnu ;;
*) fail "there is no package for $(uname -s) on $(uname -m)" "from source: cargo install --locked --path host/gateway" ;;
esac

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM

# Puts the file of that name into the scratch folder.
fetch() {
    case $from in
    *://*@*) fail "$from names somebody before an @, which hides whose address it is" "leave that out" ;;
    # The checksums come from the same place: somebody on the way could have changed both.
    https://* | http://127.0.0.1:*)
        if command -v curl >/dev/null; then
            curl -fsSL -o "$scratch/$1" "$from/$1"
        elif command -v wget >/dev/null; then
            wget -q -O "$scratch/$1" "$from/$1"
        else
            fail "neither curl nor wget is there" "download the files by hand, and say --from DIR"
        fi || fail "cannot download $from/$1" "is that where the packages are?"
        ;;
    *://*) fail "$from is no https:// address" "what comes by another way may be anybody's" ;;
    *) cp "$from/$1" "$scratch/$1" 2>/dev/null || fail "there is no $1 in $from" "--from says where the packages are" ;;
    esac
}

fetch SHA256SUMS
wanted=$(sed -n "s/^[0-9a-f]\{64\}  \(pmk-host-$version-$target\.tar\.gz\)\$/\1/p" "$scratch/SHA256SUMS")
case $wanted in
'') fail "SHA256SUMS names no such package for $target" "is --version one that is there?" ;;
*'
'*) fail "there are several versions" "say --version with one of them" ;;
esac
fetch "$wanted"

sum=$(if command -v sha256sum >/dev/null; then sha256sum "$scratch/$wanted"; else shasum -a 256 "$scratch/$wanted"; fi)
grep -qxF "${sum%% *}  $wanted" "$scratch/SHA256SUMS" ||
    fail "$wanted is not what SHA256SUMS says; nothing was installed" "download it again, from where you trust"

tar -xzf "$scratch/$wanted" -C "$scratch"
package=$scratch/${wanted%.tar.gz}
"$package/bin/pmk-host" --version >"$scratch/version" 2>"$scratch/why" ||
    fail "this machine cannot run it: $(head -n 1 "$scratch/why")" "an older glibc than the package needs? from source: cargo install --locked --path host/gateway"

mkdir -p "$prefix/bin" || fail "cannot make $prefix/bin" "--prefix says where to"
cp -R "$package/share" "$prefix/"
# In one step: a gateway that runs keeps the file that it has.
cp "$package/bin/pmk-host" "$prefix/bin/.pmk-host.new"
mv -f "$prefix/bin/.pmk-host.new" "$prefix/bin/pmk-host"

echo "installed: $(cat "$scratch/version"), $prefix/bin/pmk-host"
case :$PATH: in
*:"$prefix/bin":*) echo "next: pmk-host run --policy recall" ;;
*) echo "next: $prefix/bin/pmk-host run --policy recall    ($prefix/bin is not on the path)" ;;
esac
