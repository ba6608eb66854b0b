# SPDX-License-Identifier: Apache-2.0
# Sourced by the examples' scripts: the program, trainings with a log, and what a log ends with.
# shellcheck shell=bash
source "$(dirname "${BASH_SOURCE[0]}")/../tools/common.sh"
cd "$root"

program=${CAFETIERE:-$root/build/release/cli/cafetiere}
[[ -x $program ]] || fail "$program is not there; run ./quickstart first or set CAFETIERE to the program"

# usage_if_asked SCRIPT ARGUMENT...: prints the head of SCRIPT and leaves, if help or nothing is asked.
usage_if_asked() {
  [[ ${2:---help} == -h || ${2:---help} == --help ]] || return 0
  sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$1"
  exit 0
}

# field SOLVER NAME: a number or text of a solver.
field() { sed -n "s/^$2: *\"\{0,1\}\([^\"]*\)\"\{0,1\}$/\1/p" "$1"; }

# train_in_turn LOG SOLVER...: each solver goes on from the state in which the one before it ended.
# The log's tests are shown; at the end stand the last accuracy and, where Python is set up, a picture.
train_in_turn() {
  local log=$1 solver from=()
  : >"$log"
  for solver in "${@:2}"; do
    say "cafetiere train -solver $solver ${from[*]}"
    "$program" train -solver "$solver" "${from[@]}" 2>&1 | tee -a "$log" | grep 'Testing net\|Test net output' ||
      fail "the training stopped; see the end of $log"
    from=(-snapshot "$(field "$solver" snapshot_prefix)_iter_$(field "$solver" max_iter).solverstate")
  done
  draw "$log"
  say "accuracy on the test images: $(sed -n 's/.*Test net output.*: accuracy = //p' "$log" | tail -n 1) (log: $log)"
}

# draw LOG: tables and a picture of a log, beside it.
draw() {
  [[ -x .venv/bin/python ]] || return 0
  PYTHONPATH=python .venv/bin/python -m cafetiere.parse_log "$1" "$(dirname "$1")" --plot --verbose
}
