#!/bin/sh
# Prints each word of the texts in a folder with its count, the most frequent first.
set -eu

cat "$1"/*.txt |
    tr '[:upper:]' '[:lower:]' |
    tr -cs '[:alpha:]' '\n' |
    grep . |
    sort |
    uniq -c |
    sort -k1,1nr -k2,2 |
    awk '{ print $1 "\t" $2 }'
