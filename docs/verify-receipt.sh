#!/usr/bin/env bash
# Verifies a signed receipt with openssl and jq alone, without nucleus-gate.
#
#   docs/verify-receipt.sh ENVELOPE PUBLIC-KEY      in the project root
#
# Exit codes: 0 an authentic, complete pass of frozen files, each of which is here unchanged; 1 authentic, but no pass; 5
# not authentic, a bound file has drifted, or policy and matrix were not the frozen ones; 2 wrong invocation.
set -euo pipefail
[ $# -eq 2 ] || { echo "usage: $0 ENVELOPE PUBLIC-KEY" >&2; exit 2; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
refuse() { echo "refused: $1" >&2; exit 5; }

# The envelope: one signature, over the type and the very bytes that are read below.
jq -e '(.signatures | length) == 1' "$1" > "$scratch/out" || refuse "no envelope (.dsse.json) with one signature"
jq -re .payload "$1" | base64 -d > "$scratch/payload" || refuse "no payload"
jq -re '.signatures[0].sig' "$1" | base64 -d > "$scratch/signature" || refuse "no signature"
type=$(jq -re .payloadType "$1") || refuse "no payload type"
[ "$type" = application/vnd.in-toto+json ] || refuse "another payload type"
{
    printf 'DSSEv1 %d %s %d ' "${#type}" "$type" "$(wc -c < "$scratch/payload")"
    cat "$scratch/payload"
} > "$scratch/signed"
openssl pkeyutl -verify -pubin -inkey "$2" -rawin -in "$scratch/signed" -sigfile "$scratch/signature" > "$scratch/out" \
    || refuse "the signature does not verify"

# The statement: a receipt of this project.
jq -e '._type == "https://in-toto.io/Statement/v1" and .predicateType == "urn:nucleus-gate:receipt:v1"' \
    "$scratch/payload" > "$scratch/out" || refuse "not a receipt"
jq -e '.predicate.schemaVersion == "1"' "$scratch/payload" > "$scratch/out" || refuse "another version of a receipt"

# Its paths lead nowhere else.
jq -e '[.predicate | .bindings | .policy.file, .caseMatrix.file, (.subjects[] | .bundle, .files[].name, .sources[].name)]
    + [.predicate.cases[].file | select(. != null) | .path]
    | all(test("^/|(^|/)\\.\\.?(/|$)|[\\x00-\\x1f\\x7f\\\\]") | not)' \
    "$scratch/payload" > "$scratch/out" || refuse "a path that leads elsewhere"

# Every file that it binds, and no others in the bundles.
jq -r '.predicate
    | (.bindings.freeze.lockSha256 | select(. != null) | [., "policies/nucleus-gate.lock"]),
      (.bindings.policy, .bindings.caseMatrix | select(.file | startswith("builtin:") | not) | [.digest.sha256, .file]),
      (.bindings.subjects[] | .bundle as $bundle | .files[] | [.digest.sha256, $bundle + "/" + .name]),
      (.cases[].file | select(. != null) | [.digest.sha256, .path])
    | .[0] + "  " + .[1]' "$scratch/payload" > "$scratch/files"
# A source that lies here must be the one that was judged.
jq -r '.predicate.bindings.subjects[].sources[] | .digest.sha256 + "  " + .name' "$scratch/payload" \
    | while read -r digest name; do if [ -e "$name" ]; then echo "$digest  $name"; fi; done >> "$scratch/files"
jq -r '.predicate.bindings.subjects[] | .bundle + "/" + .files[].name' "$scratch/payload" | sort > "$scratch/listed"
jq -r '.predicate.bindings.subjects[].bundle' "$scratch/payload" \
    | while read -r bundle; do find "$bundle" -mindepth 1 -type f; find "$bundle" -mindepth 1 ! -type f -printf 'other\n'; done \
    | sort > "$scratch/found" || refuse "a bundle is missing"
cmp -s "$scratch/listed" "$scratch/found" || refuse "a bundle holds other files"
sha256sum --quiet --strict --check "$scratch/files" || refuse "a bound file has drifted"
echo "authentic: $(wc -l < "$scratch/files") files as bound"

jq -r '.predicate.bindings.freeze | "freeze: \(.state)\(if .why then " (" + .why + ")" else "" end)"' "$scratch/payload" \
    | tr -cd '\012\040-\176'
jq -e '.predicate.bindings.freeze | .state == "frozen" and .lockSha256 != null' "$scratch/payload" > "$scratch/out" \
    || refuse "the run was not of frozen files"
jq -r '.predicate | "execution \(.execution.status), decision \(.decision)"' "$scratch/payload"
jq -e '.predicate | .execution.status == "complete" and (.execution.stopReasons | length) == 0 and .decision == "pass"
    and .exitCode == "0" and (.violations | length) == 0 and all(.cases[].rows[]; .verdict == "passed")
    and (.cases | length) > 0 and all(.cases[]; .rows | length > 0)
    and (.bindings.subjects | length) > 0 and all(.bindings.subjects[]; .files | length > 0)' \
    "$scratch/payload" > "$scratch/out"
