#!/usr/bin/env bash
# A queue of at most 4, as a program that speaks gosprl's line protocol (docs/protocol.md).
#
#     gosprl collect --process "bash examples/processes/queue.sh" --need 20 --seed 0
#
# The observation is the length. Actions: "wait", and "serve" where somebody waits; one arrives in 3 of 10 steps. The
# first argument, if there is one, names a file for a log of all steps.
set -u
length=0
log=${1:-/dev/null}
: >"$log"

field() { # the text after "$1": in the line, up to a comma or brace
    [[ $line =~ \"$1\":\"?([^\",}]*) ]] && printf '%s' "${BASH_REMATCH[1]}"
}

offered() { if ((length > 0)); then printf '["wait","serve"]'; else printf '["wait"]'; fi; }

while IFS= read -r line; do
    id=$(field id)
    case $(field type) in
        hello) printf '{"type":"hello","protocol":1,"actions":["wait","serve"],"id":%s}\n' "$id" ;;
        reset)
            seed=$(field seed)
            [[ -n $seed ]] && RANDOM=$seed
            length=0
            printf '{"observation":%s,"actions":%s,"id":%s}\n' "$length" "$(offered)" "$id"
            ;;
        step)
            action=$(field action)
            before=$length
            if [[ $action == serve ]]; then length=$((length - 1)); fi
            if ((RANDOM % 10 < 3 && length < 4)); then length=$((length + 1)); fi
            printf '{"observation":%s,"reward":%s,"actions":%s,"id":%s}\n' "$length" "-$length" "$(offered)" "$id"
            printf '%s %s %s\n' "$before" "$action" "$length" >>"$log"
            ;;
        close) exit 0 ;;
        *) printf '{"error":"expected hello, reset, step or close","id":%s}\n' "${id:-0}" ;;
    esac
done
