#!/bin/sh
# Tests stats.sh. Needs a POSIX shell and nothing else.
set -u
cd "$(dirname "$0")" || exit 2

failed=0
check() {
	got=$(printf "$2" | sh ./stats.sh)
	if [ "$got" = "$3" ]; then
		echo "ok    $1"
	else
		echo "FAIL  $1: got '$got', want '$3'"
		failed=$((failed + 1))
	fi
}

check "nothing"                     ""                        "lines=0 words=0"
check "one word"                    "hello\n"                 "lines=1 words=1"
check "two lines"                   "a rope\nand a ship\n"    "lines=2 words=5"
check "no newline at the end"       "one two"                 "lines=1 words=2"
check "stars are words"             "* ? *\n"                 "lines=1 words=3"

if [ "$failed" -gt 0 ]; then
	echo "$failed of 5 checks failed"
	exit 1
fi
echo "all 5 checks passed"
