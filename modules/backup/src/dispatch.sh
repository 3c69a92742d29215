command=${1-}
[ $# -gt 0 ] && shift
if [ "$command" = surplus ]; then
  surplus "${1-0}" "${2-0}" "${3-0}" "${4-}"
  exit
fi
WORK=$(mktemp -d "${TMPDIR:-/var/tmp}/linux-sysadmin-backup.XXXXXX") || fail WORK_FAILED "/var/tmp can't be written"
: >"$WORK/sources"
: >"$WORK/request"
: >"$WORK/notes"

# The excludes are left in the script's own arguments, since sh has no other list.
if [ "$command" = run ]; then
  schedule=${1-}
  shift $#
  case $schedule in '' | *[!A-Za-z0-9_-]* | -*) fail INVALID_ARGUMENTS "expected the name of a schedule" ;; esac
  [ -r "$CONFIG/$schedule.conf" ] || fail SCHEDULE_NOT_FOUND "$CONFIG/$schedule.conf can't be read"
  label=$schedule
  waits=yes
  while IFS= read -r line || [ -n "$line" ]; do
    case $line in
      '' | '#'*) continue ;;
      exclude=*) set -- "$@" "--exclude=${line#exclude=}" ;;
    esac
    option "${line%%=*}" "${line#*=}"
  done <"$CONFIG/$schedule.conf"
else
  left=$#
  options=yes
  while [ "$left" -gt 0 ]; do
    word=$1
    shift
    left=$((left - 1))
    case $options$word in
      yes--) options=no ;;
      yes--exclude=*) set -- "$@" "$word"; option exclude "${word#*=}" ;;
      yes--full) option full yes ;;
      yes--*=*) word=${word#--}; option "${word%%=*}" "${word#*=}" ;;
      *) case $command in
          verify | preview | restore) if [ -z "$id" ]; then id=$word; else option path "$word"; fi ;;
          *) option path "$word" ;;
        esac ;;
    esac
  done
fi
machine=$(machine)
self=$(self)
parse_destination
case $command in
  create) create "$@" ;;
  run) create "$@" && prune ;;
  list) list ;;
  check) check ;;
  verify) verify ;;
  preview) preview ;;
  restore) restore ;;
  archive-etc) archive_etc ;;
  *) fail INVALID_ARGUMENTS "expected create, run, list, check, verify, preview, restore, archive-etc or surplus" ;;
esac
