#!/usr/bin/env bash
# What it does and what it returns, in one line that models read.
#
# Parameters come as JSON on standard input. What is printed is the result.
# @param {string} text - what it is for models that have never seen the tool
set -eu

params=$(cat)
printf '{"success": true, "bytes": %d}\n' "${#params}"
