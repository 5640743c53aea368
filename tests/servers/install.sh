#!/usr/bin/env bash
# Installs what the tests of stores and readers talk to, once, into the user's cache folder: moto's S3 server, pyarrow,
# DuckDB and deltalake from PyPI, Azurite from npm. Needs Python 3 with venv, and Node with npm. Prints the folder.
set -euo pipefail

folder=${THRONG_TEST_SERVERS:-${XDG_CACHE_HOME:-$HOME/.cache}/throng-test-servers}
packages=("moto[server]==5.2.5" "pyarrow==26.0.1" "duckdb==2.0.0" "deltalake==1.6.6")
azurite="azurite@3.35.0"

for tool in python3 npm flock; do
    if ! command -v "$tool" >/dev/null; then
        echo "tests/servers/install.sh needs $tool, which is not installed" >&2
        exit 1
    fi
done

mkdir -p "$folder"
# One installation at a time; the others find it done.
exec 9>"$folder/lock"
flock 9
wanted="${packages[*]} $azurite"
if [[ $(cat "$folder/installed" 2>/dev/null) != "$wanted" ]]; then
    rm -rf "$folder/installed" "$folder/python" "$folder/node"
    mkdir "$folder/node"
    {
        python3 -m venv "$folder/python"
        "$folder/python/bin/pip" install --quiet --disable-pip-version-check "${packages[@]}"
    } >&2 &
    python=$!
    npm install --prefix "$folder/node" --no-audit --no-fund --loglevel=error "$azurite" >&2
    wait "$python"
    echo "$wanted" >"$folder/installed"
fi
echo "$folder"
