# Backups in a repository of restic. Each is a snapshot with the tags linux-sysadmin, its name, machine=… and label=… . Retention
# and names are those of the other destinations, so that a schedule means the same everywhere.
PASSWORD=$CONFIG/restic-password
hash= steadily= why=

# Runs restic with the repository. What it complains about lies in $WORK/errors afterwards.
in_restic() { # WORD...
  if [ -z "$host" ]; then
    # The cache would only have what lies on this machine anyhow.
    $steadily restic --password-file "$PASSWORD" --repo "$root" --no-cache "$@" </dev/null 2>"$WORK/errors"
  else
    $steadily restic --password-file "$PASSWORD" --repo "sftp:$host:$root" -o "sftp.command=ssh $ssh_options $host -s sftp" "$@" </dev/null 2>"$WORK/errors"
  fi
}

# What restic complained about, without what it tried again and where in its source that was.
restic_complaint() {
  grep -vE '^[[:space:]]|^$|^(github\.com|main|runtime|golang\.org)[./]|^Save\(<|^Load\(<|retrying after|^Warning:' "$WORK/errors" |
    head -n 3 | tr '\n' ' ' | tr -d '\000-\037\177' | cut -c 1-500
}

restic_failed() { # WHAT: turns what restic complained about into a problem
  text=$(head -c 65536 "$WORK/errors")
  case $text in
    *'no space left on device'* | *'quota exceeded'*) fail DESTINATION_FULL "$destination is full: $(restic_complaint)" ;;
    *'wrong password'*) fail RESTIC_PASSWORD_WRONG "the password in $PASSWORD isn't the one of $destination" ;;
    *'already locked'*) fail REPOSITORY_LOCKED "$destination: $(restic_complaint)" ;;
    *'unknown flag'* | *'unknown command'*) fail RESTIC_TOO_OLD "$(restic version 2>/dev/null | cut -c 1-60): $(restic_complaint)" ;;
    *'Is there a repository at'*) fail REPOSITORY_MISSING "there is no repository at $destination" ;;
  esac
  ! is_damage || fail REPOSITORY_CORRUPT "$1: $(restic_complaint)"
  case $text in
    *'ssh: '* | *'Host key verification failed'* | *'Permission denied ('* | *'start the sftp session'* | *'ssh command exited'* | *'subprocess ssh'*)
      # restic ends without waiting for what ssh says.
      [ -z "$host" ] || why=$(ssh $ssh_options "$host" -s sftp </dev/null 2>&1 >/dev/null | tail -n 1 | tr -d '\000-\037\177' | cut -c 1-300)
      fail DESTINATION_UNREACHABLE "$host: ${why:-$(restic_complaint)}" ;;
  esac
  fail RESTIC_FAILED "$1: $(restic_complaint)"
}

# Whether restic found something else in the repository than it has put there.
is_damage() {
  grep -qE 'ciphertext verification failed|Pack ID does not match|repository contains errors|invalid data returned|hash mismatch|not found in (repository|index)|[Pp]ack .*(does not exist|missing)|unable to load (tree|index)|file too short|no such file or directory.*/data/|/data/[^ ]*: no such file' "$WORK/errors"
}

# Runs what needs the repository for itself alone. Of a run that was killed here restic removes the lock, unless another machine
# has the name of this one, so that restic couldn't tell whose lock it is.
alone() { # WORD...
  in_restic "$@" >"$WORK/said" && return
  grep -q 'already locked' "$WORK/errors" || return
  snapshots | awk -v "own=$self-" -v "machine=$machine" 'index($1, own) == 1 && $3 != machine { found = 1 } END { exit found }' || return
  in_restic unlock >/dev/null && in_restic "$@" >"$WORK/said"
}

check_password() {
  open=$(exposed "$PASSWORD")
  case $(stat -c '%F:%u:%a' "$PASSWORD" 2>/dev/null) in
    "regular file:$account:"[46]00) [ -z "$open" ] || fail RESTIC_PASSWORD_UNSAFE "others than root may change $open, above $PASSWORD" ;;
    '' | 'regular empty file:'*) fail RESTIC_PASSWORD_MISSING "$PASSWORD must have the password of the repository, in a file of root alone (mode 0600)" ;;
    *) fail RESTIC_PASSWORD_UNSAFE "$PASSWORD must be a file of root that nobody else may read (mode 0600)" ;;
  esac
}

# Makes sure that restic is here, and fetches the list of our snapshots. A repository that is missing is made by `create` only.
reach_repository() {
  command -v restic >/dev/null || fail RESTIC_MISSING "restic isn't installed here"
  restic backup --help 2>/dev/null | grep -q -e --files-from-raw || fail RESTIC_TOO_OLD "$(restic version 2>/dev/null | cut -c 1-60) has no --files-from-raw: expected restic 0.12 or newer"
  unset RESTIC_PASSWORD RESTIC_PASSWORD_COMMAND RESTIC_REPOSITORY_FILE RESTIC_KEY_HINT
  export RESTIC_PROGRESS_FPS=0.1
  check_password
  if [ -z "$host" ]; then
    answers "$root" || fail DESTINATION_HANGS "$root doesn't answer within $ANSWERS_WITHIN seconds"
    if [ -d "$root" ]; then reach_directory; else reach_above; fi
    if [ ! -e "$root/config" ]; then
      [ -z "$(ls -A "$root" 2>/dev/null | head -n 1)" ] || fail REPOSITORY_MISSING "$root has files, but no repository of restic: expected a repository, or an empty or missing directory"
      no_repository
      return
    fi
  fi
  # Whoever only reads needs no lock for it, and could have no right to write one.
  in_restic --no-lock snapshots --json --tag linux-sysadmin >"$WORK/snapshots" && return
  if [ -n "$host" ] && grep -q 'Is there a repository at' "$WORK/errors" && grep -qE 'no such file|does not exist' "$WORK/errors"; then
    no_repository
    return
  fi
  restic_failed "the repository can't be opened"
}

no_repository() {
  case $command in create | run | check) ;; *) fail REPOSITORY_MISSING "there is no repository at $destination yet" ;; esac
  say '[]' >"$WORK/snapshots"
  is_new=yes
}

# The directory in which the repository's own one will be made.
reach_above() {
  name=${root##*/}
  given=$root
  answers "${given%/*}/" || fail DESTINATION_HANGS "${given%/*} doesn't answer within $ANSWERS_WITHIN seconds"
  absent=$(unmounted "$given" | head -n 1)
  [ -z "$absent" ] || fail DESTINATION_NOT_MOUNTED "/etc/fstab has $absent, but it isn't mounted"
  root=$(cd "${given%/*}/" 2>/dev/null && pwd -P) || fail DESTINATION_NOT_FOUND "there is no directory ${given%/*} in which $given could be made"
  root=${root%/}/$name
  for path in "$given" "$root"; do
    open=$(exposed "$path")
    [ -z "$open" ] || fail DESTINATION_UNSAFE "others than root may change $open, above $path: expected a directory in directories of root"
  done
}

# Our snapshots: lines NAME HASH MACHINE. In JSON a string has no quotes without a backslash, so that no path looks like a key.
snapshots() {
  grep -oE '"(tags":\[[^]]*\]|id":"[0-9a-f]+")' "$WORK/snapshots" | awk -F '"' '
    $2 == "tags" {
      name = machine = ""
      for (i = 4; i < NF; i += 2) {
        if ($i ~ /^machine=/) machine = substr($i, 9)
        else if ($i !~ /=/ && $i ~ /-[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]-[0-9][0-9][0-9][0-9][0-9][0-9]/) name = $i
      }
    }
    $2 == "id" { if (name != "") print name, $4, machine; name = machine = "" }'
}

hash_of() { snapshots | awk -v "name=$1" '$1 == name { found = $2 } END { print found }'; } # NAME

# Sums up what restic says while it makes a snapshot: its progress now and then, and last the numbers.
SUMMARY='
function number(key) { return match($0, "\"" key "\":[0-9]+") ? substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3) : 0 }
/^\{"message_type":"status"/ && number("bytes_done") { printf "%d files, %.0f bytes\n", number("files_done"), number("bytes_done") > "/dev/stderr" }
/^\{"message_type":"summary"/ {
  print "files=" number("total_files_processed")
  print "directories=" number("dirs_new") + number("dirs_changed") + number("dirs_unmodified")
  print "bytes=" number("total_bytes_processed")
  print "new_files=" number("files_new") + number("files_changed")
  print "new_bytes=" number("data_added")
}'

is_on_overlay() {
  while IFS= read -r path; do
    [ "$(stat -f -c %T "$path" 2>/dev/null)" != overlayfs ] || return 0
  done <"$WORK/sources"
  return 1
}

has_source() { # DIRECTORY
  while IFS= read -r source; do
    case $source/ in "$1"/*) return 0 ;; esac
  done <"$WORK/sources"
  return 1
}

create_snapshot() { # the excludes as options
  if [ -n "$is_new" ]; then
    in_restic init >/dev/null || restic_failed "the repository can't be made"
    say "note=a new repository was made: without the password in $PASSWORD nobody can read it, so keep a copy of it elsewhere" >>"$WORK/notes"
  fi
  [ -n "$host" ] || [ -w "$root" ] || fail DESTINATION_FAILED "the repository can't be written: $root is on a read-only file system"
  name=$self-$(stamp "$started")${label:+-$label}
  while [ -n "$(hash_of "$name")" ]; do
    # The clock was set back, or two backups were made in one second.
    now=$((${now:-$started} + 1))
    name=$self-$(stamp "$now")${label:+-$label}
  done
  tags=linux-sysadmin,$name,machine=$machine${label:+,label=$label}
  if [ -n "$dumps" ]; then
    # restic finds what didn't change by the path, so that it is the same at each run.
    staged=$DUMPS/$(printf %s "$destination" | cksum | tr ' ' -)
    rm -rf "$staged"
    mkdir -p "$staged" || fail WORK_FAILED "$staged can't be made"
    dump_databases
    for database in $dumps; do tags=$tags,dump=$database; done
    printf '%s\0' "$staged" >>"$WORK/listed"
  fi
  leave_out "$WORK/sources"
  note_left_out
  while IFS= read -r path; do set -- "$@" "--exclude=$(include_of "$path")"; done <"$WORK/left_out"
  boundary=--one-file-system
  if is_on_overlay; then
    # The files of an overlay can be on other devices than its directories, and restic would leave all of them out.
    boundary=
    while IFS= read -r path; do
      has_source "$path" || set -- "$@" "--exclude=$(include_of "$path")/*"
    done <"$WORK/apart"
  fi
  set -- "$@" "--exclude=${WORK##*/}"
  [ "$full" = no ] || set -- "$@" --force
  say "copying to $destination"
  steadily=steadily
  {
    in_restic backup --json --files-from-raw "$WORK/listed" $boundary --host "$self" --tag "$tags" "$@"
    echo $? >"$WORK/code"
  } | awk "$SUMMARY" >"$WORK/summary"
  steadily=
  check_stuck
  cp "$WORK/errors" "$WORK/unread"
  finished=$(date +%s)
  code=$(cat "$WORK/code")
  case $code in
    0) ;;
    3) check_unread ;;
    *) restic_failed "the backup" ;;
  esac
  note_counts
  say "id=$name"
  say "started=$started"
  say "finished=$finished"
  cat "$WORK/summary" "$WORK/notes"
}

# restic makes a snapshot also where it couldn't read everything. What vanished meanwhile is a note; else it is no good backup.
check_unread() {
  # From 0.17 on it has words in the place of the number.
  vanished=$(grep -cE '"message_type":"error".*("Err":2[,}]|: no such file or directory")' "$WORK/unread")
  if [ "$vanished" -gt 0 ] && [ "$(grep -c '"message_type":"error"' "$WORK/unread")" = "$vanished" ]; then
    say "note=$vanished files vanished while they were read" >>"$WORK/notes"
    return
  fi
  list_again
  found=$(hash_of "$name")
  left=
  [ -z "$found" ] || alone forget "$found" || left=", and $name, which lacks it, can't be removed: $(restic_complaint)"
  fail RESTIC_FAILED "not everything could be read$left: $(grep '"message_type":"error"' "$WORK/unread" | head -n 5 | tr '\n' ';' | tr -d '\000-\037\177' | cut -c 1-600)"
}

list_again() { in_restic --no-lock snapshots --json --tag linux-sysadmin >"$WORK/snapshots" || restic_failed "the snapshots can't be listed"; }

# A restic before 0.17 keeps no numbers with a snapshot, so that they become tags. A list without them is no failure.
note_counts() {
  case $(restic version) in 'restic 0.'[0-9].* | 'restic 0.1'[0-6].*) ;; *) return ;; esac
  tags=$(sed -n -e 's/^\(files\|bytes\|new_bytes\)=/\1=/p' "$WORK/summary" | tr '\n' ',')
  list_again
  alone tag --add "${tags%,}" "$(hash_of "$name")" || true
}

list_snapshots() {
  # A repository of others can be large, and this is one line.
  printf 'snapshots '
  tr -d '\n' <"$WORK/snapshots"
  say ''
}

check_repository() {
  reach_repository
  [ -z "$is_new" ] || say "repository=missing"
  [ -z "$host" ] || return 0
  at=$root
  [ -d "$at" ] || at=${root%/*}/
  set -- $(df -P -k "$at" | tail -n 1)
  say "total_kib=${2-}"
  say "free_kib=${4-}"
  [ -w "$at" ] || say "read_only=yes"
}

# Functions of awk. `decoded` gives the text of a string of JSON as rsync writes names, `raw` the bytes themselves. What isn't
# UTF-8 can't be told apart in JSON, and sets `lossy`.
DECODED='
BEGIN { for (i = 1; i < 256; i++) ord[sprintf("%c", i)] = i; for (i = 0; i < 16; i++) hex[substr("0123456789abcdef", i + 1, 1)] = i }
function byte(code) { return raw || code == 9 || code >= 32 && code < 127 ? sprintf("%c", code) : sprintf("\\#%03o", code) }
function decoded(text,   out, i, c, code) {
  if (text !~ /[^ !#-[^-~\]]/) return text
  for (i = 1; i <= length(text); i++) {
    c = substr(text, i, 1)
    if (c != "\\") { out = out byte(ord[c]); continue }
    c = substr(text, ++i, 1)
    if (c == "u") {
      code = ((hex[substr(text, i + 1, 1)] * 16 + hex[substr(text, i + 2, 1)]) * 16 + hex[substr(text, i + 3, 1)]) * 16 + hex[substr(text, i + 4, 1)]
      i += 4
      if (code == 65533) lossy = 1
      if (code < 128) out = out byte(code)
      else if (code < 2048) out = out byte(192 + int(code / 64)) byte(128 + code % 64)
      else out = out byte(224 + int(code / 4096)) byte(128 + int(code / 64) % 64) byte(128 + code % 64)
    }
    else if (c == "\\" && !raw && substr(text, i + 1, 4) ~ /^#[0-9][0-9][0-9]/) out = out "\\#134"
    else out = out byte(c == "n" ? 10 : c == "t" ? 9 : c == "r" ? 13 : c == "b" ? 8 : c == "f" ? 12 : ord[c])
  }
  return out
}
function member(key) { return match($0, "\"" key "\": *\"([^\"\\\\]|\\\\.)*\"") ? substr($0, RSTART + length(key) + 4, RLENGTH - length(key) - 5) : "" }'

# Finds the snapshot of a name, and the paths that it was asked for.
fetch_snapshot() {
  hash=$(hash_of "$id")
  [ -n "$hash" ] || fail BACKUP_NOT_FOUND "$destination has no backup $id"
  in_restic --no-lock cat snapshot "$hash" >"$WORK/snapshot" || restic_failed "the snapshot can't be read"
  : >"$WORK/manifest"
  algorithm=
  choice=
  # Each path stands on a line of its own.
  sed -n '/^  "paths": \[$/,/^  \]/s/^    "\(.*\)",\{0,1\}$/\1/p' "$WORK/snapshot" | awk "$DECODED"'BEGIN { raw = 1 } { print decoded($0) }' >"$WORK/all_paths"
  while IFS= read -r path; do
    case $path in
      "$DUMPS"/*) [ "$path" != "${path#"$DUMPS"/*/}" ] || dumped=$path ;;
      *) ! is_safe_path "$path" || say "$path" ;;
    esac
  done <"$WORK/all_paths" >"$WORK/recorded"
}

# A pattern of restic that stands for this very path.
include_of() { printf %s "$1" | sed 's/[[*?\\]/\\&/g'; } # PATH

# Reads the lines of `tar --compare --verbose`: each entry, and behind it what differs. Those above what was asked for are left out.
COMPARED='
function told(text,   out, i, c) {
  if (index(text, "\\") == 0) return text
  for (i = 1; i <= length(text); i++) {
    c = substr(text, i, 1)
    if (c != "\\") { out = out c; continue }
    c = substr(text, ++i, 1)
    if (c ~ /[0-7]/) { out = out "\\#" substr(text, i, 3); i += 2 }
    else if (c == "\\") out = out (substr(text, i + 1, 4) ~ /^#[0-9][0-9][0-9]/ ? "\\#134" : "\\")
    else out = out (c == "t" ? "\t" : sprintf("\\#%03o", index("abtnvfr", c) + 6))
  }
  return out
}
function tell(what, path, why) { count[what]++; if (count[what] <= shown) line[what, count[what]] = what " tree/" path (why == "" ? "" : "\t" why) }
function is_ours(path,   i) { for (i = 1; i <= n; i++) if (path == top[i] || index(path, top[i] "/") == 1) return 1; return 0 }
function done_with() { if (entry != "" && why != "") tell("changed", entry, why); entry = why = "" }
which == "recorded" { gsub(/\\/, "&&"); top[++n] = substr(decoded($0), 2); next }
which == "gone" {
  if (sub(/^tar: /, "") && sub(/: Warning: Cannot stat: (No such file or directory|Not a directory)$/, "")) { path = told($0); sub(/\/$/, "", path); if (is_ours(path)) tell("missing", path, "") }
  next
}
entry != "" && index($0, given ": ") == 1 && (substr($0, length(given) + 1) ~ /^: (Contents|Size|Symlink|File type|Mode|Uid|Gid|Mod time) differs?$/) {
  if ($0 ~ /: (Contents|Size|Symlink) differs?$|: File type differs$/) why = "content"
  else if ($0 !~ /: Mod time differs$/ && why == "") why = "mode or owner"
  next
}
{ done_with(); given = $0; path = told($0); sub(/\/$/, "", path); if (is_ours(path)) { entries++; entry = path } }
END {
  done_with()
  print "entries=" entries + 0
  kinds = "missing changed"
  m = split(kinds, kind, " ")
  if (live == "yes") for (k = 1; k <= m; k++) {
    print kind[k] "=" count[kind[k]] + 0
    for (i = 1; i <= count[kind[k]] && i <= shown; i++) print line[kind[k], i]
  }
}'

# Reads everything that this one backup needs, as a stream of tar, which is compared with what is live. Only where that fails
# all of the repository is read, to tell which files it is about.
verify_snapshot() {
  live=yes
  case $id in "$self"-[0-9]*) ;; *) live=no ;; esac
  [ "$(snapshots | awk -v "hash=$hash" '$2 == hash { print $3 }')" = "$machine" ] || live=no
  [ "$live" = yes ] || say "note=it was made by another host, so that it isn't compared with the files here"
  if [ "$live" = yes ] && ! tar --version 2>/dev/null | grep -q GNU; then
    live=no
    say "note=the tar here can't compare, so that the backup isn't compared with the files here"
  fi
  lockless=
  [ -n "$host" ] || [ -w "$root" ] || lockless=--no-lock
  {
    in_restic $lockless dump "$hash" /
    echo $? >"$WORK/code"
  } | {
    if [ "$live" = yes ]; then tar --compare --verbose --quoting-style=escape -C / -f - 2>"$WORK/gone"; else tar -tf - 2>"$WORK/gone"; fi
    cat >/dev/null
  } >"$WORK/compared"
  # restic 0.14 leaves out what is in a directory that it can't read, and neither says so nor fails. Its list does.
  if [ "$(cat "$WORK/code")" = 0 ] && in_restic $lockless ls "$hash" >/dev/null; then
    say "corrupt=0"
  else
    is_damage || restic_failed "reading the backup"
    tell_corrupt
    return
  fi
  awk -v "shown=$SHOWN" -v "live=$live" "$DECODED$COMPARED" which=recorded "$WORK/recorded" which=gone "$WORK/gone" which=all "$WORK/compared"
}

tell_corrupt() {
  why=$(restic_complaint)
  [ "$live" = no ] || say "note=what is live wasn't compared, since not all of the backup can be read"
  in_restic $lockless check --read-data >"$WORK/said"
  cat "$WORK/said" >>"$WORK/errors"
  # Blobs, packs and trees all have such names, and restic finds the files of each.
  packs=$(grep -oE 'Pack ID does not match, want [0-9a-f]{64}|[Pp]ack [0-9a-f]{64}' "$WORK/errors" | grep -oE '[0-9a-f]{64}' | sort -u | head -n 200)
  [ -z "$packs" ] || in_restic --no-lock find --json --snapshot "$hash" --pack $packs 2>/dev/null >"$WORK/said"
  grep -oE '"path":"([^"\\]|\\.)*"' "$WORK/said" | sort -u | awk "$DECODED"'{ print decoded(member("path")) }' >"$WORK/corrupt"
  if [ -s "$WORK/corrupt" ]; then
    say "corrupt=$(wc -l <"$WORK/corrupt" | tr -d ' ')"
    head -n "$SHOWN" "$WORK/corrupt" | awk '{ sub(/^\//, ""); print "corrupt tree/" $0 "\tits pack is damaged" }'
  else
    say "corrupt=1"
    printf 'corrupt tree/\t%s\n' "$why"
  fi
  say "entries=$(in_restic --no-lock ls --json "$hash" | grep -c '"struct_type":"node"')"
}

# Compares the entries of a snapshot with what is live there.
FORESEEN='
function tell(what, path) { count[what]++; if (count[what] <= shown) line[what, count[what]] = what " /" path }
function is_wanted(path,   i) { for (i = 1; i <= n; i++) if (path == wanted[i] || index(path, wanted[i] "/") == 1) { found[i] = 1; return 1 } return 0 }
which == "wanted" { wanted[++n] = $0; next }
which == "live" { if ($1 == "total") next; path = $0; for (i = 0; i < 7; i++) path = substr(path, index(path, " ") + 1); kind[path] = $1; size[path] = $3; time[path] = $4; next }
!/"struct_type":"node"/ { next }
{
  path = member("path")
  raw = 1; plain = decoded(path); raw = 0
  if (!is_wanted(plain)) next
  lossy = 0
  path = substr(decoded(path), 2)
  type = member("type")
  if (type == "dir") next
  stamp = member("mtime")
  stamp = substr(stamp, 1, 4) "/" substr(stamp, 6, 2) "/" substr(stamp, 9, 2) "-" substr(stamp, 12, 8)
  odd += lossy
  if (!(path in kind)) { count["created"]++; next }
  if (type == "file" && kind[path] == "f" && match($0, /"size":[0-9]+/) && substr($0, RSTART + 7, RLENGTH - 7) == size[path] && stamp == time[path]) next
  if (type == "symlink" && kind[path] == "L" && stamp == time[path]) next
  if (type != "file" && type != "symlink" && kind[path] ~ /[DS]/) next
  count["overwritten"]++
  if (time[path] > stamp) { if (count["newer"]++ < shown) newer[count["newer"]] = path }
  else if (older_count++ < shown) older[older_count] = path
}
END {
  for (i = 1; i <= n; i++) if (!(i in found)) { print "absent=" wanted[i]; exit }
  print "created=" count["created"] + 0
  print "overwritten=" count["overwritten"] + 0
  print "newer=" count["newer"] + 0
  for (i = 1; i <= count["newer"] && i <= shown; i++) print "newer /" newer[i]
  for (i = 1; i <= older_count && i <= shown; i++) print "overwritten /" older[i]
  if (odd) print "note=" odd " names are no UTF-8: whether they would be overwritten can\047t be told before"
}'

# Sets the paths that are asked for; without any it is all that the backup was asked for.
choose_sources() {
  [ -s "$WORK/sources" ] || cp "$WORK/recorded" "$WORK/sources"
  while IFS= read -r path; do
    is_safe_path "$path" || fail INVALID_PATH "$path is no absolute path without .."
  done <"$WORK/sources"
  if [ -n "$target" ]; then
    check_target
    return
  fi
  while IFS= read -r path; do
    link=$(redirected "$path")
    [ -z "$link" ] || fail TARGET_IS_SYMLINK "$link, above $path, is a symlink now, and could lead what root restores elsewhere: restore to a target"
  done <"$WORK/sources"
}

# Nothing is read but the names, so that a preview costs little.
preview_snapshot() {
  command -v rsync >/dev/null || fail RSYNC_MISSING "rsync isn't installed here, by which files are put in their place"
  choose_sources
  : >"$WORK/live"
  if [ -z "$target" ] || [ -d "$target" ]; then
    while IFS= read -r path; do
      if [ -e "$target$path" ] || [ -L "$target$path" ]; then printf '%s\0' "$path"; fi
    done <"$WORK/sources" >"$WORK/listed"
    mkdir -p "$WORK/empty"
    rsync -a -r --dry-run --numeric-ids --one-file-system "$(items)" --from0 "--files-from=$WORK/listed" "${target:-}/" "$WORK/empty/" 2>/dev/null |
      awk -v top= "$ENTRIES" >"$WORK/live" 2>/dev/null
  fi
  {
    in_restic --no-lock ls --json "$hash"
    echo $? >"$WORK/code"
  } | awk -v "shown=$SHOWN" "$DECODED$FORESEEN" which=wanted "$WORK/sources" which=live "$WORK/live" which=nodes - >"$WORK/foreseen"
  [ "$(cat "$WORK/code")" = 0 ] || restic_failed "the preview"
  absent=$(sed -n 's/^absent=//p' "$WORK/foreseen")
  [ -z "$absent" ] || fail NOT_IN_BACKUP "$id has no $absent"
  cat "$WORK/foreseen"
}

# Restores a snapshot beside its place, from where rsync puts it there with the same care as what lies in a mirror. It fails
# where nothing is left to do, since the target is new.
restore_snapshot() {
  command -v rsync >/dev/null || fail RSYNC_MISSING "rsync isn't installed here, by which files are put in their place"
  # Without paths, what the backup was asked for is all of it, dumps too.
  wanted=all
  [ -s "$WORK/sources" ] && wanted=paths
  choose_sources
  make_stage
  set --
  if [ "$wanted" = paths ] || [ -z "$target" ]; then
    while IFS= read -r path; do set -- "$@" --include "$(include_of "$path")"; done <"$WORK/sources"
    [ -z "$target" ] || [ -z "$dumped" ] || set -- "$@" --include "$(include_of "$dumped")"
  else
    enough_room
  fi
  ! restic restore --help 2>/dev/null | grep -q -e --sparse || set -- "$@" --sparse
  lockless=
  [ -n "$host" ] || [ -w "$root" ] || lockless=--no-lock
  in_restic $lockless restore "$hash" --target "$staged/$id/tree" "$@" >/dev/null || {
    ! grep -qE 'no space left on device|quota exceeded' "$WORK/errors" || fail TARGET_FULL "$staged is full, and nothing was put in its place: $(restic_complaint)"
    restic_failed "nothing was put in its place"
  }
  while IFS= read -r path; do
    [ -e "$staged/$id/tree$path" ] || [ -L "$staged/$id/tree$path" ] || fail NOT_IN_BACKUP "$id has no $path"
  done <"$WORK/sources"
  if [ -n "$dumped" ] && [ -d "$staged/$id/tree$dumped" ]; then
    mv "$staged/$id/tree$dumped" "$staged/$id/dumps"
    # Nothing else of the directories above is in the backup, unless it was asked for.
    rmdir -p "$staged/$id/tree$DUMPS" 2>/dev/null
  fi
  if [ -n "$target" ] && [ ! -e "$target" ]; then
    [ ! -d "$staged/$id/dumps" ] || mv "$staged/$id/dumps" "$staged/$id/tree/dumps"
    mv "$staged/$id/tree" "$target" 2>"$WORK/errors" || fail TARGET_FAILED "$target can't be made: $(complaint "$WORK/errors")"
    find "$target" ! -type d -exec stat -c '%s %F' {} + | awk '{ n++; if (/ regular/) bytes += $1 } END { printf "restored=%d\nbytes=%.0f\n", n, bytes }'
    return 1
  fi
  scheme=local host= root=$staged base=$staged extra=
}

# Makes the directory beside the target, on the same disk; for files that go back to where they were it lies in /var/backups.
make_stage() {
  above=$RESTORING
  [ -z "$target" ] || above=${target%/*}/
  [ ! -d "$target" ] || above=$target
  [ -n "$target" ] || mkdir -p "$above" || fail WORK_FAILED "$above can't be made"
  # A restore that was killed leaves its files behind.
  for left in "${above%/}"/.linux-sysadmin-restoring.*; do
    run=${left##*/.linux-sysadmin-restoring.}
    [ -d "$left" ] && ! kill -0 "${run%%.*}" 2>/dev/null && rm -rf "$left"
  done
  staged=$(mktemp -d "${above%/}/.linux-sysadmin-restoring.$$.XXXXXX") || fail TARGET_FAILED "$above can't be written"
}

enough_room() {
  needed=$(in_restic --no-lock stats --json --mode restore-size "$hash" | grep -oE '"total_size":[0-9]+' | grep -oE '[0-9]+')
  free=$(df -P -k "$staged" | awk 'END { print $4 }')
  [ "$((${needed:-0} / 1024))" -le "${free:-0}" ] || fail TARGET_FULL "the backup needs $needed bytes at $staged, where $((free * 1024)) are free"
}

# Removes what the schedule no longer keeps. Only backups of this machine with its label are its own.
prune_snapshots() {
  list_again
  snapshots >"$WORK/all"
  awk -v "machine=$machine" '$3 == machine { print $1 }' "$WORK/all" | sort -u | labelled "$self" "$label" |
    surplus "${keep_daily:-0}" "${keep_weekly:-0}" "${keep_monthly:-0}" "$(stamp "$started")" | grep -vxF -e "$name" >"$WORK/surplus"
  [ -s "$WORK/surplus" ] || return 0
  set -- $(awk 'FNR == NR { goes[$1] = 1; next } $1 in goes { print $2 }' "$WORK/surplus" "$WORK/all")
  alone forget --prune "$@" || restic_failed "the backup is made, but older ones can't be removed"
  sed 's/^/removed=/' "$WORK/surplus"
}

