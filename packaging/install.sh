#!/bin/sh
# Installs pmk-host from where its packages are: a folder, or an address. Nothing is installed whose checksum is wrong.
set -eu
# Others run the program, whatever the umask of whoever installs it.
umask 022

# As the program itself goes by it.
case ${LC_ALL:-${LC_MESSAGES:-${LANG:-}}} in
zh_TW* | zh-TW* | zh_Hant* | zh-Hant*) chinese=yes ;;
*) chinese= ;;
esac

# The first in English, the second in Chinese.
pick() {
    if [ -n "$chinese" ]; then printf '%s\n' "$2"; else printf '%s\n' "$1"; fi
}

usage() {
    pick 'usage: install.sh [--from DIR|URL] [--prefix DIR] [--version VERSION]

  --from DIR|URL     where SHA256SUMS and the tarballs are; the folder of this script unless told
  --prefix DIR       where to: DIR/bin/pmk-host and DIR/share; ~/.local unless told
  --version VERSION  which, where there are several' '用法：install.sh [--from DIR|URL] [--prefix DIR] [--version VERSION]

  --from DIR|URL     SHA256SUMS 和 tarball 在哪裡；不寫就是這個腳本的資料夾
  --prefix DIR       裝到哪裡：DIR/bin/pmk-host 和 DIR/share；不寫就是 ~/.local
  --version VERSION  有好幾個版本時，要哪一個'
}

# What is wrong and what to do, each in both languages.
fail() {
    printf '%s%s\n' "$(pick 'error: ' '錯誤：')" "$(pick "$1" "$2")" >&2
    printf '  %s%s\n' "$(pick 'hint: ' '提示：')" "$(pick "$3" "$4")" >&2
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
        case $2 in '' | *[!0-9A-Za-z.-]*) fail "$2 is no version" "$2 不是版本" "one is 1.2.3" "例如 1.2.3" ;; esac
        version=$2
        ;;
    esac
    shift 2
done
case $prefix in /*) ;; *) prefix=$PWD/$prefix ;; esac

case $(uname -s)/$(uname -m) in
Linux/x86_64 | Linux/amd64) target=x86_64-unknown-linux-gnu ;;
Linux/aarch64 | Linux/arm64) target=aarch64-unknown-linux-gnu ;;
*) fail "there is no package for $(uname -s) on $(uname -m)" "沒有給 $(uname -m) 上 $(uname -s) 的套件" \
        "from source: cargo install --locked --path host/gateway" "從原始碼：cargo install --locked --path host/gateway" ;;
esac

scratch=$(mktemp -d)
trap 'rm -rf "$scratch" "$prefix/bin/.pmk-host.new"' EXIT
trap 'exit 130' INT TERM

# Puts the file of that name into the scratch folder.
fetch() {
    case $from in
    *://*@*) fail "$from names somebody before an @, which hides whose address it is" "$from 在 @ 前面有名字，會蓋住這是誰的網址" \
        "leave that out" "請拿掉它" ;;
    # The checksums come from the same place: somebody on the way could have changed both.
    https://* | http://127.0.0.1:*)
        # Nor may a redirect lead to http; wget can only be told to follow none.
        if command -v curl >/dev/null; then
            curl -fsSL --proto-redir =https -o "$scratch/$1" "$from/$1"
        elif command -v wget >/dev/null; then
            wget -q --max-redirect=0 -O "$scratch/$1" "$from/$1" ||
                fail "cannot download $from/$1 with wget" "無法用 wget 下載 $from/$1" \
                    "wget may follow no redirect here: install curl, or download the files by hand and say --from DIR" \
                    "這裡不允許 wget 跟隨轉址：請安裝 curl，或自行下載檔案，再用 --from DIR"
        else
            fail "neither curl nor wget is there" "沒有 curl，也沒有 wget" \
                "download the files by hand, and say --from DIR" "請自行下載檔案，再用 --from DIR"
        fi || fail "cannot download $from/$1" "無法下載 $from/$1" "is that where the packages are?" "套件在那裡嗎？"
        ;;
    *://*) fail "$from is no https:// address" "$from 不是 https:// 網址" \
        "what comes by another way may be anybody's" "經由別的途徑，來的可能是任何人的東西" ;;
    *) cp "$from/$1" "$scratch/$1" 2>/dev/null || fail "there is no $1 in $from" "$from 裡沒有 $1" \
        "--from says where the packages are" "用 --from 指定套件在哪裡" ;;
    esac
}

fetch SHA256SUMS
wanted=$(sed -n "s/^[0-9a-f]\{64\}  \(pmk-host-$version-$target\.tar\.gz\)\$/\1/p" "$scratch/SHA256SUMS")
case $wanted in
'') fail "SHA256SUMS names no such package for $target" "SHA256SUMS 裡沒有這樣給 $target 的套件" \
    "is --version one that is there?" "有 --version 說的那一版嗎？" ;;
*'
'*) fail "there are several versions" "有好幾個版本" "say --version with one of them" "請用 --version 指定其中一個" ;;
esac
fetch "$wanted"

sum=$(if command -v sha256sum >/dev/null; then sha256sum "$scratch/$wanted"; else shasum -a 256 "$scratch/$wanted"; fi)
grep -qxF "${sum%% *}  $wanted" "$scratch/SHA256SUMS" ||
    fail "$wanted is not what SHA256SUMS says; nothing was installed" "$wanted 和 SHA256SUMS 說的不同；什麼都沒有裝" \
        "download it again, from where you trust" "請從可信任的地方重新下載"

tar -xzf "$scratch/$wanted" -C "$scratch"
package=$scratch/${wanted%.tar.gz}

mkdir -p "$prefix/bin" || fail "cannot make $prefix/bin" "無法建立 $prefix/bin" "--prefix says where to" "用 --prefix 指定裝到哪裡"
# Tried where it will be: the scratch folder may be on a file system from which nothing may run.
cp "$package/bin/pmk-host" "$prefix/bin/.pmk-host.new"
# In English, so that the reason can be told from others.
(LC_ALL=C && export LC_ALL && exec "$prefix/bin/.pmk-host.new" --version) >"$scratch/version" 2>"$scratch/why" || {
    why=$(head -n 1 "$scratch/why")
    case $why in
    *'ermission denied'*) fail "nothing may run from $prefix/bin: $why" "$prefix/bin 裡的程式不能執行：$why" \
        "--prefix says where to: choose a file system without noexec" "請用 --prefix 指定沒有 noexec 的檔案系統" ;;
    esac
    fail "this machine cannot run it: $why" "這台機器無法執行它：$why" \
        "an older glibc than the package needs? from source: cargo install --locked --path host/gateway" \
        "glibc 比套件需要的舊？從原始碼：cargo install --locked --path host/gateway"
}
cp -R "$package/share" "$prefix/"
# In one step: a gateway that runs keeps the file that it has.
mv -f "$prefix/bin/.pmk-host.new" "$prefix/bin/pmk-host"

installed="$(cat "$scratch/version"), $prefix/bin/pmk-host"
pick "installed: $installed" "已安裝：$installed"
case :$PATH: in
*:"$prefix/bin":*) pick "next: pmk-host run --policy recall" "接下來：pmk-host run --policy recall" ;;
*)
    pick "next: $prefix/bin/pmk-host run --policy recall    ($prefix/bin is not on the path)" \
        "接下來：$prefix/bin/pmk-host run --policy recall    （$prefix/bin 不在 PATH 裡）"
    ;;
esac
