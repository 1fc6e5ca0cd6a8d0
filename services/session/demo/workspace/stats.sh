#!/bin/sh
# Counts the lines and the words of standard input.
set -eu
set -f # words with * or ? in them are words, not file names

lines=0
words=0
while IFS= read -r line || [ -n "$line" ]; do
	lines=$((lines + 1))
	set -- $line
	words=$((words + $# - 1))
done
echo "lines=$lines words=$words"
