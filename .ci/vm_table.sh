#!/bin/sh
# vm_table.sh INSTRUCTIONS TESTS CASES PRODUCTS: what of some instructions the virtual machine has,
# as tables. All but INSTRUCTIONS are expressions of go test; INSTRUCTIONS is one of names.
#   forms     of the table of PTX, with how many choices of modifiers were decoded and how many refused
#   tests     with how many cases each compared
#   kernels   of other compilers, in testdata/ptx/foreign: right and silent
#   products  as tensor cores add (--tensor exact), GFLOP/s of one core
set -eu
cd "$(dirname "$0")/.."
out=$(mktemp)
trap 'rm -f "$out"' EXIT
failed=0
go test ./bench/vm -v -run "^(TestForms|$2)\$" -bench "$4" -benchtime 1x >"$out" || failed=1
go test ./bench/vm -v -run "TestForeignCases/$3" >>"$out" || failed=1
awk -v names="$1" '
function rest(n,  s) { s = $0; while (n-- > 0) sub(/^[ \t]*[^ \t]+/, "", s); return s }
/ form: / && $3 ~ names {
	if (!forms++) printf "%-44s %6s %6s %8s\n", "INSTRUCTION", "FORMS", "TRIED", "REFUSED"
	printf "%-44s %6d %6d %8d\n", $3, $4, $5, $6
}
/^=== RUN/ { running = $3 }
/\[rapid\] OK, passed/ { split(running, part, "/"); cases[part[1]] += $5 }
/^ +--- (PASS|FAIL)/ { split($3, part, "/"); if (part[1] == "TestForeignCases") kernel[++kernels] = part[2] " " $2; else subtests[part[1]]++ }
/^--- (PASS|FAIL)/ && $3 != "TestForms" && $3 != "TestForeignCases" { test[++tests] = $3; sub(":", "", $2); result[$3] = tolower($2) }
/GFLOP\/cpu-s/ { name = $1; sub(/^BenchmarkExact\//, "", name); sub(/-[0-9]+$/, "", name); product[++products] = name; speed[products] = $(NF-1) }
END {
	if (tests) printf "\n%-44s %6s  %s\n", "TEST", "CASES", "RESULT"
	for (i = 1; i <= tests; i++) { t = test[i]; sub(":", "", t); n = cases[t] + subtests[t]; printf "%-44s %6d  %s\n", t, n ? n : 1, result[test[i]] }
	if (kernels) printf "\n%-44s %s\n", "KERNEL", "RIGHT AND SILENT"
	for (i = 1; i <= kernels; i++) { split(kernel[i], part, " "); printf "%-44s %s\n", part[1], part[2] ~ /PASS/ ? "yes" : "no" }
	if (products) printf "\n%-100s %s\n", "PRODUCT, ADDED AS TENSOR CORES DO", "GFLOP/s A CORE"
	for (i = 1; i <= products; i++) printf "%-100s %.2f\n", product[i], speed[i]
}' "$out"
if [ $failed = 1 ]; then
	grep -A 20 -e '--- FAIL' "$out"
	exit 1
fi
