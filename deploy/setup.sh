#!/bin/sh
# Builds .venv from the lock file and fetches the JVM parts. Run by make; a second run finds everything in place.
# "setup.sh tools" makes it without Spark and the JVM parts, for what needs no Java: make lint, format, quick.
set -eu
cd "$(dirname "$0")/.."

fail() {
    printf '%s\n' "$1" >&2
    exit 1
}

step() { printf '\n== %s\n' "$1"; }

find_python() {
    for candidate in "${PYTHON:-}" python3 python3.14 python3.13 python3.12 python3.11; do
        if [ -n "$candidate" ] && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
}

if [ -n "${PYTHON:-}" ]; then
    "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || fail "PYTHON names $PYTHON, which is no Python 3.11 or newer."
fi
python=$(find_python)
[ -n "$python" ] || fail "Python 3.11 or newer is needed and none was found: install it, e.g. 'sudo apt-get install python3 python3-venv' or 'brew install python', or name it with PYTHON=/path/to/python3."
"$python" -c 'import ensurepip, venv' 2>/dev/null || fail "$python cannot make virtual environments: 'sudo apt-get install python3-venv' adds that."

# No single name is in every release of Debian and Ubuntu.
java_package() {
    for release in 17 21 25; do
        if apt-cache show "openjdk-$release-jre-headless" >/dev/null 2>&1; then
            echo "openjdk-$release-jre-headless"
            return
        fi
    done
    echo openjdk-17-jre-headless
}

install_java() {
    echo "'sudo apt-get install $(java_package)' installs it, or 'brew install openjdk@17' and then 'export JAVA_HOME=\"\$(brew --prefix openjdk@17)\"'"
}

whole=true
[ "${1:-}" != tools ] || whole=false

check_java() {
    java=${JAVA_HOME:+$JAVA_HOME/bin/}java
    release=$("$java" -version 2>&1 | sed -n 's/.*version "\([^"]*\)".*/\1/p' | head -n 1) || release=
    version=$(printf '%s\n' "$release" | sed 's/^1\.//; s/[^0-9].*//')
    [ -n "$version" ] || fail "Java 17 or newer is needed and none was found: $(install_java)."
    [ "$version" -ge 17 ] || fail "Java $version is too old, 17 or newer is needed: $(install_java); JAVA_HOME selects it."
}
! $whole || check_java

# Which Python an environment is made of: two of one version may be built differently.
identity() { "$1" -c 'import sys; print(sys.version, sys.base_prefix)' 2>/dev/null; }

if [ -n "${PYTHON:-}" ] && [ -d .venv ] && [ "$(identity "$PYTHON")" != "$(identity .venv/bin/python)" ]; then
    step "Removing .venv, which was made with another Python"
    rm -rf .venv
fi
[ -x .venv/bin/python ] || {
    step "Creating .venv with $("$python" --version)"
    "$python" -m venv .venv
}

lock=requirements.lock
if $whole; then
    step "Installing the locked dependencies (about a minute; pyspark alone is 450 MB)"
else
    step "Installing the locked dependencies without Spark"
    lock=.venv/without-spark.lock
    awk '/^[^ #]/ { skips = /^(pyspark|py4j)==/ } !skips' requirements.lock >$lock
fi
.venv/bin/python -m pip install --disable-pip-version-check --require-hashes --no-deps --no-compile --quiet --progress-bar on -r "$lock" &
pip=$!
trap 'kill $pip 2>/dev/null || true' INT TERM
# pip says nothing while it builds pyspark's wheel: show that it lives.
while kill -0 $pip 2>/dev/null; do
    printf '.'
    sleep 2
done
echo
wait $pip || fail "The locked dependencies could not be installed; the lines above say which. Is the package index reachable?"
.venv/bin/python -m compileall -q -j 0 .venv/lib >/dev/null 2>&1 || true # on all cores, which pip does not; some templates are no Python
.venv/bin/python -m pip install --disable-pip-version-check --quiet --no-deps --no-build-isolation --editable .

touch .venv/.tools
if ! $whole; then
    step "Ready for style, types and the tests of the model, with $(.venv/bin/python --version)"
    exit
fi

step "Fetching the JVM parts (Spark's Kafka connector and a Kafka broker, 60 MB, once per user)"
.venv/bin/python -m streaming.spark.jvm

touch .venv/.ready
step "Ready, with $(.venv/bin/python --version) and Java $release ($(command -v "$java"))"
