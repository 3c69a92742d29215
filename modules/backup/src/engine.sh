#!/bin/sh
# Makes, lists, checks and restores backups by rsync or by restic. It is part of linux-sysadmin, and needs nothing else of it:
# timers and cron run it by `backup run NAME`. dash, bash and busybox run it.
#
# A destination has a directory for each backup, HOST-YYYY-MM-DD-HHMMSS[-LABEL] in UTC:
#   tree/      the files below their full paths; what didn't change is a hard link to the backup before
#   dumps/     dumps of databases
#   manifest   a line for each file: kind, checksum, size, time, mode, uid, gid, path. The path is written as rsync writes it:
#              bytes that aren't printable ASCII are \#ooo in octal; a blank in a symlink's target is \#040.
#   info       lines KEY=VALUE: what was asked for, and what became of it
# A backup in the making is called .incomplete-NAME, one that is being removed .removing-NAME. Only rename(2) makes it good.
set -u
umask 077
export LC_ALL=C TZ=UTC HOME="${HOME:-/root}"
ENGINE=1
CONFIG=/etc/linux-sysadmin/backup
# A directory of root alone, unlike /run/lock, where others could make or hold the lock first.
RUN=/run/linux-sysadmin-backup
MACHINE=/etc/machine-id
REDIS=/etc/redis
# Seconds in which a file system answers, and after which a copy that neither reads nor writes is ended.
ANSWERS_WITHIN=10
STUCK_AFTER=3600
REPLACED=/var/backups/linux-sysadmin-replaced
# What restic reads and writes beside the files themselves: dumps of databases, and what a restore puts in its place by rsync.
DUMPS=/var/backups/linux-sysadmin-dumps
RESTORING=/var/backups/linux-sysadmin-restoring
# The most lines of each kind in an answer.
SHOWN=20
WORK= mounted= staged= scheme= host= user= port= root= base= extra= ssh_options=
destination= label= dumps= target= id= full=no unsteady= is_new= dumped= now=
keep_daily= keep_weekly= keep_monthly= waits=no
account=$(id -u)

fail() { # CODE MESSAGE
  printf '%s: %s\n' "$1" "$2" >&2
  exit 1
}

say() { printf '%s\n' "$1"; }

cleanup() {
  [ -n "$mounted" ] && { umount "$mounted" || umount -l "$mounted"; } 2>/dev/null && rmdir "$mounted"
  [ -n "$staged" ] && rm -rf "$staged" && rmdir "$DUMPS" "$RESTORING" 2>/dev/null
  [ -n "$WORK" ] && rm -rf "$WORK"
}
trap cleanup EXIT
trap 'exit 130' HUP INT TERM

quoted() { printf "'%s'" "$(printf '%s\n' "$1" | sed "s/'/'\\\\''/g")"; }

# Runs a line of shell in the destination's directory.
there() {
  case $scheme in
    # The options are words without blanks, and so is the host.
    ssh) ssh $ssh_options "$host" "sh -c $(quoted "cd $(quoted "$root") || exit 66; umask 077; $1")" ;;
    *) (cd "$root" || exit 66; exec sh -c "$1") ;;
  esac
}

# The last line of what a program complained about.
complaint() { grep -v '^[[:space:]]*$' "$1" 2>/dev/null | tail -n 1 | tr -d '\000-\010\013-\037\177' | cut -c 1-300; }

# Whether the file system of a path answers. Whoever else looks there would hang as well, and nobody could end him.
answers() { # PATH
  timeout -s KILL "$ANSWERS_WITHIN" stat -f "$1" >/dev/null 2>&1
  [ $? -ne 137 ]
}

# Runs a program that reads the files, and ends it where it hangs: its file system may stop to answer in the middle.
steadily() { # PROGRAM WORD...
  rm -f "$WORK/pid" "$WORK/stuck"
  watch_it >/dev/null 2>&1 </dev/null 9>&- &
  watcher=$!
  sh -c 'echo $$ >"$0"; exec "$@"' "$WORK/pid" "$@"
  ended=$?
  kill "$watcher" 2>/dev/null
  return "$ended"
}

watch_it() {
  trap 'kill "$nap" 2>/dev/null; exit 0' TERM
  step=$((STUCK_AFTER / 30)) quiet=0 before=
  [ "$step" -gt 0 ] || step=1
  while :; do
    sleep "$step" &
    nap=$!
    wait "$nap"
    read -r process <"$WORK/pid" && moved=$(sed -n 's/^[rw]char: //p' "/proc/$process/io") && [ -n "$moved" ] || continue
    [ "$moved" = "$before" ] || quiet=0
    before=$moved quiet=$((quiet + step))
    [ "$quiet" -gt "$STUCK_AFTER" ] || continue
    # The links lead to what it has open, and whoever only reads them needs nothing of that file system.
    ls -l "/proc/$process/fd" | sed -n 's|^.* -> \(/.*\)$|\1|p' | grep -vF -e /dev/null -e "$RUN/" -e "$WORK/" | tail -n 1 >"$WORK/stuck"
    kill -KILL "$process"
    exit 0
  done
}

# Tells of a program that was ended since it hung.
check_stuck() {
  [ ! -e "$WORK/stuck" ] || fail SOURCE_HANGS "nothing was read or written for $STUCK_AFTER seconds, while this was open: $(tr -d '\000-\037\177' <"$WORK/stuck" | cut -c 1-300)"
}

is_safe_path() { # PATH
  case $1 in *[[:cntrl:]]* | */../* | */..) return 1 ;; /*) return 0 ;; *) return 1 ;; esac
}

# An awk function: the text with the bytes that \040 and the like stand for, as in fstab and /proc/self/mounts.
PLAIN='function plain(text,   p) { while ((p = match(text, /\\[0-7][0-7][0-7]/)) > 0)
  text = substr(text, 1, p - 1) sprintf("%c", substr(text, p + 1, 1) * 64 + substr(text, p + 2, 1) * 8 + substr(text, p + 3, 1)) substr(text, p + 4)
  return text }'

# The mount points of fstab at or above a path where nothing is mounted. What an automount has is mounted by entering it.
unmounted() { # PATH
  BELOW=${1%/}/ awk "$PLAIN"'
    FILENAME == "/proc/self/mounts" { mounted[plain($2)] = 1; next }
    $1 !~ /^#/ && $2 ~ /^\/./ { point = plain($2); sub(/\/+$/, "", point); if (index(ENVIRON["BELOW"], point "/") == 1 && !(point in mounted)) print point }
  ' /proc/self/mounts /etc/fstab 2>/dev/null
}

# The nearest directory above a path in which an account other than root could put something else in its place. In one with the
# sticky bit, nobody replaces what isn't his own. What find can't look at counts as such a directory, and so does a path with a
# control character, which could be read as several.
exposed() { # PATH
  case $1 in *[[:cntrl:]]*) say "$1"; return ;; esac
  above=$1
  set --
  while above=${above%/*}; do
    [ ! -d "$above/." ] || set -- "$@" "$above/."
    [ -n "$above" ] || break
  done
  newline='
'
  safe=$newline$(find "$@" -prune '(' -user 0 -o -user "$account" ')' '(' -perm -1000 -o ! -perm -002 ! -perm -020 ')')$newline
  for above; do
    case $safe in *"$newline$above$newline"*) continue ;; esac
    above=${above%/.}
    say "${above:-/}"
    return
  done
}

# Whether a directory is root's, and nobody else may write there.
is_private() { [ -n "$(find "$1/." -prune -user "$account" ! -perm -002 ! -perm -020)" ]; }

# The symlink above a path.
redirected() { # PATH
  above=$1
  while above=${above%/*} && [ -n "$above" ]; do
    [ ! -L "$above" ] || { say "$above"; return; }
  done
}

# The part of a path below a directory, also where either is seen under another name. It fails where the path lies elsewhere.
below() { # PATH DIRECTORY
  above=$1 rest=
  while ! [ "$above/." -ef "$2/." ]; do
    [ -n "$above" ] || return 1
    rest=/${above##*/}$rest above=${above%/*}
  done
  say "$rest"
}

is_id() { # NAME
  case $1 in *[!A-Za-z0-9._-]* | .* | -*) return 1 ;; *-[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]-[0-9][0-9][0-9][0-9][0-9][0-9]*) return 0 ;; esac
  return 1
}

parse_destination() {
  case $destination in
    local://*) scheme=local root=${destination#local://} ;;
    restic:///*) scheme=restic root=${destination#restic://} ;;
    /*) scheme=local root=$destination ;;
    rsync://*/* | sftp://*/* | nfs://*/* | restic+sftp://*/*)
      scheme=ssh root=${destination#*://}
      host=${root%%/*} root=/${root#*/}
      case $host in *@*) user=${host%@*} host=${host##*@} ;; esac
      case $host in *:*) port=${host#*:} host=${host%%:*} ;; esac
      for word in "$host" "$user" "$port"; do
        case $word in -* | *[!A-Za-z0-9._-]*) fail INVALID_DESTINATION "$destination has a host, user or port with odd characters" ;; esac
      done
      case $port in *[!0-9]*) fail INVALID_DESTINATION "$port is no port" ;; esac
      case $root in *[!A-Za-z0-9._/@+-]*) fail INVALID_DESTINATION "$root: only A-Z a-z 0-9 . _ / @ + - can be in a path on another host" ;; esac
      [ -n "$host" ] || fail INVALID_DESTINATION "$destination names no host"
      ;;
    *) fail INVALID_DESTINATION "$destination: expected local:///PATH, rsync://HOST/PATH, sftp://USER@HOST:PORT/PATH, nfs://HOST/PATH, restic:///PATH or restic+sftp://USER@HOST:PORT/PATH" ;;
  esac
  case $destination in
    nfs://*)
      scheme=nfs
      [ -z "$user$port" ] || fail INVALID_DESTINATION "nfs takes no user and no port" ;;
    restic+sftp://*) scheme=restic ;;
  esac
  is_safe_path "$root" || fail INVALID_DESTINATION "$root is no absolute path without .."
  while :; do case $root in */) root=${root%/} ;; *) break ;; esac; done
  [ -n "$root" ] || fail INVALID_DESTINATION "the root directory can't be a destination"
  base=$root
  if ! is_here; then
    # A connection that is shared would outlive the run, and hold its lock.
    ssh_options="-o BatchMode=yes -o StrictHostKeyChecking=yes -o ConnectTimeout=10 -o ServerAliveInterval=15 -o ServerAliveCountMax=4 -o ForwardAgent=no -o ClearAllForwardings=yes -o ControlMaster=no -o ControlPath=none"
    [ -n "$port" ] && ssh_options="$ssh_options -p $port"
    [ -n "$user" ] && ssh_options="$ssh_options -l $user"
    export RSYNC_RSH="ssh $ssh_options"
    base=$host:$root
  fi
}

# Whether the destination is a directory here.
is_here() { [ -z "$host" ] || [ "$scheme" = nfs ]; }

# Makes sure that the destination can be worked with.
reach() {
  [ "$scheme" != restic ] || { reach_repository; return; }
  command -v rsync >/dev/null || fail RSYNC_MISSING "rsync isn't installed here"
  case $scheme in
    local) reach_directory ;;
    nfs) mount_nfs ;;
    ssh)
      uid=$(there 'id -u; command -v rsync >/dev/null || echo no rsync' </dev/null 2>"$WORK/errors")
      case $? in
        0) ;;
        66) fail DESTINATION_NOT_FOUND "$host has no directory $root: $(complaint "$WORK/errors")" ;;
        *) fail DESTINATION_UNREACHABLE "$host: $(complaint "$WORK/errors")" ;;
      esac
      case $uid in *"no rsync"*) fail RSYNC_MISSING "rsync isn't installed on $host" ;; esac
      # An account that isn't root can't give files away, so rsync keeps owners in extended attributes there.
      [ "$uid" = 0 ] || extra=-M--fake-super
      ;;
  esac
}

reach_directory() {
  given=$root
  answers "$given" || fail DESTINATION_HANGS "$given doesn't answer within $ANSWERS_WITHIN seconds"
  root=$(cd "$given" 2>/dev/null && pwd -P)
  # A disk that isn't mounted leaves an empty directory, and the backup would fill the root file system.
  absent=$(unmounted "$given" | head -n 1)
  [ -n "$root" ] || fail DESTINATION_NOT_FOUND "there is no directory $given${absent:+, and /etc/fstab has a mount that is absent: $absent}"
  [ "$root" != / ] || fail INVALID_DESTINATION "the root directory can't be a destination"
  [ -z "$absent" ] || fail DESTINATION_NOT_MOUNTED "/etc/fstab has $absent, but it isn't mounted"
  # Whoever may write there, or above it, could lead root's files elsewhere by a symlink.
  is_private "$root" || fail DESTINATION_UNSAFE "$root must belong to root, and nobody else may write there"
  for path in "$given" "$root"; do
    open=$(exposed "$path")
    [ -z "$open" ] || fail DESTINATION_UNSAFE "others than root may change $open, above $path: expected a directory in directories of root"
    [ "$root" != "$given" ] || break
  done
  base=$root
}

mount_nfs() {
  mkdir -p "$RUN" || fail WORK_FAILED "$RUN can't be made"
  # A run that was killed leaves its mount behind.
  for left in "$RUN"/mount.*; do
    run=${left##*/mount.}
    [ -d "$left" ] && ! kill -0 "${run%%.*}" 2>/dev/null && umount -l "$left" 2>/dev/null && rmdir "$left"
  done
  mounted=$(mktemp -d "$RUN/mount.$$.XXXXXX") || fail WORK_FAILED "$RUN can't be written"
  timeout 30 mount -t nfs -o nosuid,nodev,noexec,soft,timeo=300,retrans=3 "$host:$root" "$mounted" 2>"$WORK/errors" || {
    rmdir "$mounted"
    mounted=
    fail DESTINATION_UNREACHABLE "$host:$root can't be mounted: $(complaint "$WORK/errors")"
  }
  root=$mounted base=$mounted
}

# One run at a time for each destination; another one would take up the same incomplete backup.
lock() {
  key=$destination
  [ -n "$host" ] || key=$root
  mkdir -p "$RUN" && exec 9>"$RUN/lock-$(printf %s "$key" | cksum | tr ' ' -)" || fail WORK_FAILED "$RUN can't be written"
  tries=0
  until flock -n 9; do
    [ "$waits" = yes ] && [ "$tries" -lt 360 ] || fail BACKUP_RUNNING "another run works with $destination"
    tries=$((tries + 1))
    sleep 10
  done
}

stamp() { date -d "@$1" +%Y-%m-%d-%H%M%S; } # SECONDS

# What tells this machine from others with its name.
machine() { [ ! -s "$MACHINE" ] || sha256sum <"$MACHINE" | cut -c 1-16; }

self() { uname -n | cut -d . -f 1 | tr -c 'A-Za-z0-9_\n-' _; }

# xxh128 costs nothing beside copying. Over a network md5 is what every rsync has.
checksum_option() { # ALGORITHM
  rsync "--checksum-choice=$1" --version >/dev/null 2>&1 && printf '%s' "--checksum-choice=$1"
}

choose_checksum() {
  algorithm=md5
  [ "$scheme" = ssh ] || ! rsync --version | grep -qw xxh128 || {
    algorithm=xxh128 choice=--checksum-choice=xxh128
    return
  }
  choice=$(checksum_option md5)
}

# The form in which rsync writes an item: a line of the manifest, and behind // what happened and the target of a link. A name has
# no //, but a directory's ends with a slash. TOP is what stands before each name. A checksum that isn't known is as many blanks.
items() { printf '%s' "--out-format=f %C %l %M %B %U %G ${1-}%n//%i%L"; } # [TOP]

# Reads rsync's items and writes lines of a manifest. `top` is what stands before each name. Checksums that rsync doesn't
# know come from a former manifest where size and time are the same; else they are "?". The last line has totals, or the file
# `totals` has it. `written` is the file that the lines go to, where an item can be a hard link to another one. Most items are
# files, and rsync's order is the same each time, so that a file seldom costs more than a comparison with the next line of the
# former manifest.
ENTRIES='
function next_former(   p) {
  following = expected = ""
  while (former != "" && (getline former_line < former) > 0) {
    if (substr(former_line, 1, 2) != "f ") continue
    p = index(substr(former_line, 3), " ")
    its_sum = substr(former_line, 3, p - 1)
    following = substr(former_line, p + 3)
    if (unsummed != "") expected = unsummed following unchanged
    return
  }
  former = ""
}
# The attributes begin with size, time, mode, uid and gid.
function key(attributes,   f) { split(attributes, f, " "); return f[1] " " f[2] substr(attributes, length(f[1] f[2] f[3] f[4] f[5]) + 5) }
function former_sum(attributes,   k, sum) {
  if (following == attributes) { sum = its_sum; next_former(); return sum }
  k = key(attributes)
  while (!(k in known) && following != "") { known[key(following)] = its_sum; next_former() }
  return k in known ? known[k] : ""
}
function tell_progress() {
  shown_bytes = bytes
  printf "%d files, %.0f bytes\n", files, bytes > "/dev/stderr"
}
BEGIN { next_former() }
# Nearly all lines of a backup in which little has changed are of this kind.
$0 == expected && expected != "" {
  files++
  bytes += following + 0
  if (files % 10000 == 0 || bytes - shown_bytes >= 2147483648) tell_progress()
  print former_line
  next_former()
  next
}
!/^f / { next }
# All checksums have one length.
!start { start = substr($0, 3, 1) == " " ? match($0, /[0-9]/) : index(substr($0, 3), " ") + 3 }
{
  p = index($0, "//")
  what = substr($0, p + 2)
  entry = substr($0, 1, p - 1)
}
what !~ /^[<>ch.]f/ {
  attributes = substr($0, start)
  split(attributes, f, " ")
  p = length(f[1] f[2] f[3] f[4] f[5] top) + 6
  name = substr(attributes, p)
  sub(/^\/+/, "", name)
  end = index(name, "//")
  what = substr(name, end + 2)
  sub(/^\//, "", what)
  name = substr(name, 1, end - 1)
  if (what !~ /^[<>ch.][fdLDS]/ || name == "." || name == "") next
  attributes = substr(attributes, 1, p - 1) name
  kind = substr(what, 2, 1)
  if (kind == "d") { directories++; print "d - " attributes; next }
  if (kind == "L") { files++; link = substr(what, 16); gsub(/ /, "\\#040", link); gsub(/\t/, "\\#011", link); print "L >" link " " attributes; next }
  if (kind != "f") { files++; print kind " - " attributes; next }
  entry = substr($0, 1, start - 1) attributes
}
{
  files++
  attributes = substr(entry, start)
  size = attributes + 0
  link = substr(what, 16)
  if (link == "") bytes += size
  if (what ~ /^[<>c]/) { fresh++; if (link == "") fresh_bytes += size }
  if (files % 10000 == 0 || bytes - shown_bytes >= 2147483648) tell_progress()
  if (substr(entry, 3, 1) != " ") { print entry; next }
  if (link == "" && what !~ /^[<>c]/) { unsummed = substr(entry, 1, start - 1); unchanged = "//" what }
  sum = former_sum(attributes)
  if (sum != "") { print "f " sum " " attributes; next }
  if (link == "") { unknown++; print "f ? " attributes; next }
  linked[++links] = attributes
  first[links] = top link
  sums[top link] = "?"
}
END {
  if (links && written != "") {
    fflush()
    while ((getline line < written) > 0) {
      if (line !~ /^f /) continue
      path = line
      for (i = 0; i < 7; i++) path = substr(path, index(path, " ") + 1)
      if (path in sums) { split(line, f, " "); sums[path] = f[2] }
    }
  }
  for (i = 1; i <= links; i++) { if (sums[first[i]] == "?") unknown++; print "f " sums[first[i]] " " linked[i] }
  total = sprintf("total %d %d %.0f %d %.0f %d", files, directories, bytes, fresh, fresh_bytes, unknown)
  if (totals == "") print total; else print total > totals
}'

# The paths of entries without a checksum, each ended by a zero byte, as --files-from takes them.
UNKNOWN='
/^f \? / {
  path = $0
  for (i = 0; i < 7; i++) path = substr(path, index(path, " ") + 1)
  while ((p = match(path, /\\#[0-7][0-7][0-7]/)) > 0) {
    printf "%s%c", substr(path, 1, p - 1), substr(path, p + 2, 1) * 64 + substr(path, p + 3, 1) * 8 + substr(path, p + 4, 1)
    path = substr(path, p + 5)
  }
  printf "%s%c", path, 0
}'

# Puts the lines of other lists in the place of those in the manifest, and takes out what couldn't be copied.
MERGE='
{ path = $0; for (i = 0; i < 7; i++) path = substr(path, index(path, " ") + 1) }
which == "new" { if ($1 == "f" && $2 != "?") line[path] = $0; next }
which == "unsteady" { if ($1 == "f") unsteady[path] = 1; next }
$1 == "f" && path in line { print line[path]; used[path] = 1; next }
$1 == "f" && path in unsteady { next }
{ print }
END { for (path in line) if (!(path in used)) print line[path] }'

# Lists files with their checksums: nothing is copied, since rsync only pretends.
# listing TOP SOURCE [OPTION...]; the paths below SOURCE are those in the file `listed`, each ended by a zero byte.
listing() {
  top=$1 source=$2
  shift 2
  mkdir -p "$WORK/empty"
  {
    rsync -aAX -r --dry-run --checksum --numeric-ids $choice $extra "$(items "$top")" --from0 "--files-from=$WORK/listed" "$@" \
      "$source/" "$WORK/empty/" 2>"$WORK/errors"
    echo $? >"$WORK/code"
  } | awk -v "top=$top" "$ENTRIES"
}

is_full() {
  grep -qE 'No space left on device|Disk quota exceeded' "$WORK/errors" || return
  fail DESTINATION_FULL "$destination is full: $(complaint "$WORK/errors"). What was copied is kept, and the next run goes on from there"
}

unwritable() { # WHAT
  is_full
  fail DESTINATION_FAILED "$1: $(complaint "$WORK/errors")"
}

outcome() { # WHAT: turns rsync's exit code into a problem
  check_stuck
  code=$(cat "$WORK/code")
  case $code in
    0 | 24) return ;;
  esac
  is_full
  case $code in
    10 | 12 | 30 | 35 | 255) fail CONNECTION_LOST "$1: $(complaint "$WORK/errors")" ;;
    *) fail RSYNC_FAILED "$1: rsync ended with exit code $code: $(grep -v '^rsync error' "$WORK/errors" | head -n 5 | tr '\n' ';' | cut -c 1-800)" ;;
  esac
}

# The names of a host's good backups, sorted.
good_names() { # HOST
  case $scheme in
    restic) snapshots | cut -d ' ' -f 1 ;;
    *) there 'for d in *; do [ -f "$d/info" ] && printf "%s\n" "$d"; done; true' </dev/null ;;
  esac | while IFS= read -r name; do
    is_id "$name" && say "$name"
  done | sed -n "/^$1-[0-9]\{4\}-[0-9][0-9]-[0-9][0-9]-[0-9]\{6\}/p" | sort
}

# The names of this machine's own backups, unlike those of another one with its name.
own_names() {
  there "grep -lx 'machine=$machine' */info 2>/dev/null" </dev/null | sed 's|/info$||' | while IFS= read -r name; do
    is_id "$name" && say "$name"
  done
}

# Those of the names whose label is exactly this one.
labelled() { # SELF LABEL
  sed -n "/^$1-[0-9]\{4\}-[0-9][0-9]-[0-9][0-9]-[0-9]\{6\}${2:+-$2}\$/p"
}

# Leaves out names of a time that is still to come, which a wrong clock has made, unless there are no others.
until_now() {
  awk -v "now=$(stamp "$(date +%s)")" '
    !match($0, /[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]-[0-9][0-9][0-9][0-9][0-9][0-9]/) { next }
    substr($0, RSTART, RLENGTH) <= now { past = past $0 "\n"; next }
    { later = later $0 "\n" }
    END { printf "%s", past == "" ? later : past }'
}

remove_backup() { # NAME
  there "mv $(quoted "$1") $(quoted ".removing-$1") && rm -rf $(quoted ".removing-$1")" </dev/null
}

check_sources() {
  while IFS= read -r path; do
    is_safe_path "$path" || fail INVALID_PATH "$path is no absolute path without .."
    answers "${path%/*}/" && { [ -L "$path" ] || answers "$path"; } || fail SOURCE_HANGS "$path doesn't answer within $ANSWERS_WITHIN seconds"
    [ -e "$path" ] || [ -L "$path" ] || fail SOURCE_NOT_FOUND "there is no $path"
    if [ -L "$path" ]; then
      say "note=$path is a symlink, and only the link is in the backup" >>"$WORK/notes"
      continue
    fi
    case $(stat -f -c %T "$path" 2>/dev/null) in
      proc | sysfs | cgroup* | devpts | debugfs | tracefs | securityfs | bpf_fs | pstore* | binfmt_misc | configfs | efivarfs | mqueue | selinux)
        fail INVALID_PATH "$path shows the kernel's state, of which no backup can be made" ;;
    esac
    absent=$(unmounted "$path" | head -n 1)
    [ -z "$absent" ] || fail SOURCE_NOT_MOUNTED "/etc/fstab has $absent, but it isn't mounted, so that the backup of $path would lack it"
    [ -z "$host" ] && below "$(physical "$path")" "$root" >/dev/null && fail SOURCE_IN_DESTINATION "$path lies in the destination $root"
  done <"$WORK/sources"
  tr '\n' '\000' <"$WORK/sources" >"$WORK/listed"
}

# The path without symlinks.
physical() { # PATH
  if [ -d "$1" ]; then (cd "$1" && pwd -P); else say "$(cd "${1%/*}/" && pwd -P)/${1##*/}"; fi
}

# The mount points below a path, under the names that they have there: `other PATH`, or `same PATH` where the mount shows the
# file system of the path itself.
mounts_below() { # PATH
  real=$(physical "$1")
  GIVEN=${1%/} REAL=${real%/} awk "$PLAIN"'
    {
      at = plain($5) == "/" ? "" : plain($5)
      for (i = 7; i < NF && $i != "-"; i++);
      kind = $(i + 1)
    }
    index(ENVIRON["REAL"] "/", at "/") == 1 { if (length(at) >= depth) { depth = length(at); own = $3 }; next }
    # Of mounts on one directory, the last one is seen.
    index(at, ENVIRON["REAL"] "/") == 1 && at !~ /\n/ {
      if (!(at in number)) { number[at] = ++n; point[n] = at }
      device[number[at]] = kind " " $3
    }
    END {
      # The subvolumes of btrfs are file systems of their own for rsync.
      for (i = 1; i <= n; i++) {
        sort = "other "
        if (device[i] ~ /^(proc|sysfs|devtmpfs|devpts|tmpfs|cgroup2?|mqueue|debugfs|tracefs|securityfs|pstore|bpf|hugetlbfs|autofs|configfs|fusectl|ramfs|efivarfs|binfmt_misc|nsfs|selinuxfs|rpc_pipefs|nfsd) /) sort = "memory "
        else if (device[i] !~ /^btrfs / && device[i] ~ (" " own "$")) sort = "same "
        print sort ENVIRON["GIVEN"] substr(point[i], length(ENVIRON["REAL"]) + 1)
      }
    }' /proc/self/mountinfo
}

# Writes the paths under which the destination lies in what is backed up, and notes them and the other file systems.
leave_out() { # FILE
  : >"$WORK/left_out"
  : >"$WORK/other"
  : >"$WORK/apart"
  while IFS= read -r path; do
    [ -d "$path" ] && [ ! -L "$path" ] || continue
    mounts_below "$path" >"$WORK/mounts"
    sed -n 's/^other //p' "$WORK/mounts" >>"$WORK/other"
    sed -n -e 's/^other //p' -e 's/^memory //p' "$WORK/mounts" >>"$WORK/apart"
    # Whoever walks through the directory above looks at it, even where it is left out.
    while IFS= read -r at; do
      answers "$at" || fail SOURCE_HANGS "$at, which is mounted in $path, doesn't answer within $ANSWERS_WITHIN seconds"
    done <"$WORK/other"
    is_here || continue
    { say "$path"; sed -n 's/^same //p' "$WORK/mounts"; } | while IFS= read -r at; do
      rest=$(below "$root" "$at") && say "${at%/}$rest"
    done >>"$WORK/left_out"
  done <"$1"
  sort -u "$WORK/left_out" -o "$WORK/left_out"
}

# A pattern that stands for this very path.
pattern_of() {
  # rsync reads a backslash as itself where a pattern has no wildcard.
  case $1 in *[[*?]*) printf '%s/' "$1" | sed 's/[[*?\\]/\\&/g' ;; *) printf '%s/' "$1" ;; esac
}

create() { # the excludes as options of rsync
  [ -s "$WORK/sources" ] || fail INVALID_ARGUMENTS "no path is given"
  case $label in *[!A-Za-z0-9._-]*) fail INVALID_LABEL "a label has only A-Z a-z 0-9 . _ -" ;; esac
  reach
  lock
  check_sources
  started=$(date +%s)
  [ "$scheme" != restic ] || { create_snapshot "$@"; return; }
  choose_checksum
  there 'rm -rf .removing-*' </dev/null
  good_names "$self" | until_now >"$WORK/good"
  new_name
  take_up
  place=.incomplete-$name
  dump_databases
  leave_out "$WORK/sources"
  note_left_out
  while IFS= read -r path; do set -- "$@" "--exclude=$(pattern_of "$path")"; done <"$WORK/left_out"
  # Their names are found nowhere else, so that a backup never holds itself, wherever the destination is seen.
  set -- "$@" "--exclude=${WORK##*/}/" "--exclude=$place/"
  : >"$WORK/former"
  # A full backup copies everything anew, so that a bad copy of a file isn't linked to any longer.
  [ "$full" = yes ] && : >"$WORK/good"
  # The newest one with this label is of the same request, most likely; the newest of all may have more.
  for former in $({ labelled "$self" "$label" <"$WORK/good" | tail -n 1; tail -n 1 "$WORK/good"; } | sort -u); do
    set -- "$@" "--link-dest=$root/$former/tree"
    there "! grep -qx checksum=$algorithm $former/info || cat $former/manifest" </dev/null >>"$WORK/former"
  done
  : >"$WORK/begun"
  say "copying to $place"
  {
    # Behind /./ stands the path that rsync keeps, and which its items show without a slash at the beginning.
    while IFS= read -r path; do set -- "$@" "/.$path"; done <"$WORK/sources"
    steadily rsync -aHAXSR --numeric-ids -ii --one-file-system $choice $extra $resume "$(items tree/)" "$@" "$base/$place/tree/" 2>"$WORK/errors"
    echo $? >"$WORK/code"
  } | awk -v top=tree/ -v "former=$WORK/former" -v "written=$WORK/manifest" -v "totals=$WORK/totals" "$ENTRIES" >"$WORK/manifest" || unlisted
  check_stuck
  copy_again "$@"
  outcome "the copy"
  vanished=$(grep -c '^file has vanished\|^directory has vanished' "$WORK/errors")
  [ "$vanished" = 0 ] || say "note=$vanished files vanished while they were read" >>"$WORK/notes"
  finish
}

note_left_out() {
  [ "$scheme" = nfs ] || sed 's/^.*$/note=& is left out, since the backup is made there/' "$WORK/left_out" >>"$WORK/notes"
  sort -u "$WORK/other" | while IFS= read -r path; do
    [ "$path" = "$root" ] || grep -qxF -e "$path" "$WORK/sources" || say "note=$path is another file system, and is left out unless it is among the paths"
  done | head -n "$SHOWN" >>"$WORK/notes"
}

# Whether nothing but files that changed while they were read has failed.
is_only_change() {
  [ "$(cat "$WORK/code")" = 23 ] && ! grep -v 'failed verification -- update \|read errors mapping .*: No data available\|^rsync error: some files/attrs were not\|^file has vanished\|^$' "$WORK/errors" | grep -q .
}

# Copies files again that changed while they were read. One that never keeps still is left out.
copy_again() { # the excludes as options of rsync
  tries=0
  while is_only_change && [ "$tries" -lt 5 ]; do
    tries=$((tries + 1))
    sleep 1
    changed_since >"$WORK/again" || unlisted
    steadily rsync -aHAXS --numeric-ids $choice $extra --from0 "--files-from=$WORK/again" --ignore-missing-args "$@" \
      / "$base/$place/tree/" >/dev/null 2>"$WORK/errors"
    echo $? >"$WORK/code"
  done
  is_only_change || return
  unsteady=yes
  say "note=left out, since it changed each time that it was read: $(sed -n 's/^[A-Z]*: \(.*\) failed verification.*$/\/\1/p' "$WORK/errors" | sort -u | head -n 5 | tr '\n' ' ' | cut -c 1-300)" >>"$WORK/notes"
  echo 0 >"$WORK/code"
}

new_name() {
  now=$started
  while :; do
    name=$self-$(stamp "$now")${label:+-$label}
    there "[ -e $name ] || [ -e .incomplete-$name ]" </dev/null || break
    # The clock was set back, or two backups were made in one second.
    now=$((now + 1))
  done
}

# Takes up the newest incomplete backup of the same request. Others of this host are removed.
take_up() {
  resume=
  there 'ls -A' </dev/null | grep "^\.incomplete-$self-[0-9]\{4\}-" | sort -r >"$WORK/incomplete"
  while IFS= read -r old; do
    is_id "${old#.incomplete-}" || continue
    # Another machine with this one's name may be at work there.
    [ "$(there "cat $old/machine 2>/dev/null || printf %s '$machine'" </dev/null)" = "$machine" ] || continue
    if [ -z "$resume" ] && there "cat $old/request" </dev/null 2>/dev/null | cmp -s - "$WORK/request"; then
      # rsync writes .NAME.XXXXXX beside each file. Whatever else is called so is copied once more.
      there "mv $old .incomplete-$name && cd .incomplete-$name && rm -rf dumps && find tree ! -type d -name '.*.??????' -exec rm -f {} +" </dev/null 2>"$WORK/errors" || unwritable "$old can't be taken up"
      resume='--delete --delete-excluded'
      say "note=it goes on from a backup that was interrupted" >>"$WORK/notes"
    else
      there "rm -rf $old" </dev/null
    fi
  done <"$WORK/incomplete"
  [ -n "$resume" ] && return
  # A destination without a single free inode or block fails here.
  there "mkdir .incomplete-$name && cd .incomplete-$name && mkdir tree && printf %s '$machine' >machine && cat >request" <"$WORK/request" 2>"$WORK/errors" || unwritable "the destination can't be written"
  there "cd .incomplete-$name && ln request link && ln -s request symlink && rm link symlink" </dev/null 2>"$WORK/errors" || {
    there "rm -rf .incomplete-$name" </dev/null
    fail DESTINATION_UNSUITABLE "$destination can't hold links, as vfat and exfat can't ($(complaint "$WORK/errors")): expected ext4, xfs, btrfs or nfs"
  }
}

dump_databases() {
  for database in $dumps; do
    say "dumping $database"
    case $database in
      postgresql) dump postgresql.sql runuser -u postgres -- pg_dumpall ;;
      mariadb)
        program=mariadb-dump
        command -v mariadb-dump >/dev/null || program=mysqldump
        dump mariadb.sql "$program" --single-transaction --all-databases --routines --events
        ;;
      redis)
        # redis-cli writes a whole dump to a file only. Its environment is where it takes a password from unseen.
        (
          password=$(redis_password)
          [ -z "$password" ] || export REDISCLI_AUTH="$password"
          exec redis-cli --rdb "$WORK/redis.rdb"
        ) >"$WORK/errors" 2>&1 || {
          grep -qE 'NOAUTH|WRONGPASS|AUTH failed' "$WORK/errors" && fail DUMP_FAILED "redis asks for a password that $REDIS/*.conf hasn't as requirepass: $(complaint "$WORK/errors")"
          fail DUMP_FAILED "redis: $(complaint "$WORK/errors")"
        }
        dump redis.rdb cat "$WORK/redis.rdb"
        rm -f "$WORK/redis.rdb"
        ;;
      *) fail INVALID_DUMP "$database: expected postgresql, mariadb or redis" ;;
    esac
  done
}

# The password of the Redis at the usual port. It may stand between quotes, where a backslash has a meaning.
redis_password() {
  for file in "$REDIS"/*.conf /etc/redis.conf; do
    [ ! -r "$file" ] || awk '
      tolower($1) == "port" { port = $2 }
      tolower($1) == "requirepass" { sub(/^[ \t]*[^ \t]+[ \t]+/, ""); sub(/[ \t\r]+$/, ""); password = $0 }
      END {
        if (password == "" || port != "" && port != 6379) exit
        quote = substr(password, 1, 1)
        if (quote != "\"" && quote != "\047") { print password; exit }
        password = substr(password, 2, length(password) - 2)
        while ((p = index(password, "\\")) > 0) {
          out = out substr(password, 1, p - 1)
          c = substr(password, p + 1, 1)
          password = substr(password, p + 2)
          if (quote == "\"" && c == "x") {
            out = out sprintf("%c", (index("0123456789abcdef", tolower(substr(password, 1, 1))) - 1) * 16 + index("0123456789abcdef", tolower(substr(password, 2, 1))) - 1)
            password = substr(password, 3)
          }
          else out = out (quote == "\"" && c == "t" ? "\t" : quote == "\"" || c == "\047" ? c : "\\" c)
        }
        print out password
      }' "$file"
  done | tail -n 1
}

dump() { # FILE COMMAND...
  file=$1
  shift
  {
    (cd / && exec "$@") </dev/null 2>"$WORK/errors"
    echo $? >"$WORK/code"
  } | keep_dump "$file" 2>"$WORK/errors2" || {
    mv "$WORK/errors2" "$WORK/errors"
    [ "$scheme" != restic ] || fail WORK_FAILED "the dump can't be written to $staged: $(complaint "$WORK/errors")"
    unwritable "the dump can't be written"
  }
  [ "$(cat "$WORK/code")" = 0 ] || fail DUMP_FAILED "$file: $(complaint "$WORK/errors")"
}

keep_dump() { # FILE
  case $scheme in
    restic) cat >"$staged/$1" ;;
    *) there "mkdir -p $place/dumps && cat >$place/dumps/$1" ;;
  esac
}

# Prints the files that were changed since the copying began, each with a zero byte.
changed_since() {
  while IFS= read -r path; do
    set --
    while IFS= read -r out; do set -- "$@" -path "$(printf %s "$out" | sed 's/[[*?\\]/\\&/g')" -prune -o; done <"$WORK/left_out"
    find "$path" -xdev "$@" -type f -newer "$WORK/begun" -print0 2>/dev/null
  done <"$WORK/sources"
  true
}

unlisted() { fail WORK_FAILED "the list of files can't be written to $WORK: $(df -P -k "$WORK" | tail -n 1)"; }

# Writes manifest and info, and makes the backup good. Where no file was copied, none can have changed while it was read.
finish() {
  # The files go to the disk, and what changed is looked for, while the manifest is made.
  flushing=
  if is_here; then
    there 'sync -f .' </dev/null >/dev/null 2>&1 9>&- &
    flushing=$!
  fi
  read -r is_total files directories bytes new_files new_bytes unknown <"$WORK/totals" && [ "$is_total" = total ] || unlisted
  finding=
  : >"$WORK/changed"
  if [ "$new_files$tries" != 00 ]; then
    changed_since >"$WORK/changed" 9>&- &
    finding=$!
  fi
  : >"$WORK/listed"
  [ "$unknown" = 0 ] || awk "$UNKNOWN" "$WORK/manifest" >"$WORK/listed" || unlisted
  [ -n "$dumps" ] && printf 'dumps\0' >>"$WORK/listed"
  : >"$WORK/new"
  : >"$WORK/unsteady"
  if [ -s "$WORK/listed" ]; then
    # rsync knows no checksum of what an interrupted run had copied, and dumps aren't copied by it.
    listing '' "$base/$place" >"$WORK/new" || unlisted
    outcome "reading the new backup"
  fi
  { [ -z "$finding" ] || wait "$finding"; } && mv "$WORK/changed" "$WORK/listed" || unlisted
  if [ -s "$WORK/listed" ]; then
    # A file that changed while it was read has another size and checksum than the one that was found.
    listing tree/ "$base/$place/tree" --ignore-missing-args >>"$WORK/new" || unlisted
    outcome "reading what changed"
    [ -z "$unsteady" ] || (extra=; listing tree/ '' --ignore-missing-args) >"$WORK/unsteady" || unlisted
  fi
  if [ -s "$WORK/new" ]; then
    {
      awk "$MERGE" which=new "$WORK/new" which=unsteady "$WORK/unsteady" which=old "$WORK/manifest" >"$WORK/merged" &&
        sed -n '/^d [^ ]* [^ ]* [^ ]* [^ ]* [^ ]* [^ ]* dumps/p' "$WORK/new" >>"$WORK/merged" &&
        mv "$WORK/merged" "$WORK/manifest"
    } || unlisted
  fi
  finished=$(date +%s)
  {
    say "engine=$ENGINE" &&
      say "checksum=$algorithm" &&
      say "manifest=$(sha256sum <"$WORK/manifest" | cut -d ' ' -f 1)" &&
      say "host=$self" &&
      say "machine=$machine" &&
      say "label=$label" &&
      say "started=$started" &&
      say "finished=$finished" &&
      say "files=$files" &&
      say "directories=$directories" &&
      say "bytes=$bytes" &&
      say "new_files=$new_files" &&
      say "new_bytes=$new_bytes" &&
      cat "$WORK/request" "$WORK/notes"
  } >"$WORK/info" || unlisted
  case $scheme in
    local) mv -f "$WORK/manifest" "$root/$place/manifest" ;;
    *) there "cat >$place/manifest" <"$WORK/manifest" ;;
  esac 2>"$WORK/errors" || unwritable "the manifest can't be written"
  [ -z "$flushing" ] || wait "$flushing"
  # Everything is on the disk before the backup gets its name, so that a loss of power doesn't leave empty files in a good one.
  there "cd $place && cat >info && rm -f request machine && { sync -f . 2>/dev/null || sync; } && cd .. && mv $place $name" <"$WORK/info" 2>"$WORK/errors" || unwritable "the backup can't be finished"
  say "id=$name"
  grep -E '^(started|finished|files|directories|bytes|new_files|new_bytes|note)=' "$WORK/info"
}

# Reads names of backups and prints those that go. Of each of the newest DAILY days the last one stays, of each of the
# newest WEEKLY weeks (Monday to Sunday) and MONTHLY months before as well. What a rule keeps doesn't count for the next one.
# Those of a time after NOW, which a wrong clock has made, neither go nor count.
surplus() { # DAILY WEEKLY MONTHLY [NOW]
  sort -r | awk -v "daily=$1" -v "weekly=$2" -v "monthly=$3" -v "now=${4:-9999-12-31-235959}" '
    function days(y, m, d) { if (m <= 2) { y--; m += 12 }
      return 365 * y + int(y / 4) - int(y / 100) + int(y / 400) + int((153 * (m - 3) + 2) / 5) + d }
    {
      if (!match($0, /[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]-[0-9][0-9][0-9][0-9][0-9][0-9]/)) next
      if (substr($0, RSTART, RLENGTH) > now) next
      name[++n] = $0
      date = substr($0, RSTART, 10)
      period[1, n] = date
      # A week begins on Monday.
      period[2, n] = int((days(substr(date, 1, 4) + 0, substr(date, 6, 2) + 0, substr(date, 9, 2) + 0) + 1) / 7)
      period[3, n] = substr(date, 1, 7)
    }
    END {
      most[1] = daily; most[2] = weekly; most[3] = monthly
      for (rule = 1; rule <= 3; rule++) {
        count = 0; last = ""
        for (i = 1; i <= n && count < most[rule]; i++) {
          if (period[rule, i] "" == last) continue
          last = period[rule, i] ""
          if (!(i in kept)) { kept[i] = 1; count++ }
        }
      }
      for (i = 1; i <= n; i++) if (!(i in kept)) print name[i]
    }'
}

# Removes what the schedule no longer keeps. Only backups of this machine with its label are its own.
prune() {
  [ -n "$keep_daily$keep_weekly$keep_monthly" ] || return
  [ "$scheme" != restic ] || { prune_snapshots; return; }
  own_names | labelled "$self" "$label" | surplus "${keep_daily:-0}" "${keep_weekly:-0}" "${keep_monthly:-0}" "$(stamp "$now")" >"$WORK/surplus"
  while IFS= read -r old; do
    [ "$old" = "$name" ] && continue
    remove_backup "$old" && say "removed=$old"
  done <"$WORK/surplus"
}

list() {
  reach
  [ "$scheme" != restic ] || { list_snapshots; return; }
  there 'for d in *; do [ -f "$d/info" ] && { printf "backup %s\n" "$d"; head -c 16384 "$d/info"; printf "\nend\n"; }; done
    for d in .incomplete-*; do [ -e "$d" ] && printf "incomplete %s\n" "$d"; done
    for f in *-etc-*.tar.gz; do [ -f "$f" ] && printf "archive %s %s\n" "$(wc -c <"$f")" "$f"; done; true' </dev/null
}

check() {
  [ "$scheme" != restic ] || { check_repository; return; }
  reach
  set -- $(there 'df -P -k . | tail -n 1' </dev/null)
  say "total_kib=${2-}"
  say "free_kib=${4-}"
  there '[ -w . ]' </dev/null || say "read_only=yes"
}

# Fetches what is known of a backup, and refuses one that isn't good.
fetch() {
  if [ "$id" = latest ]; then
    id=$(good_names "$self" | until_now | tail -n 1)
    [ -n "$id" ] || id=$(good_names '.*' | sed 's/^.*-\([0-9]\{4\}-[0-9][0-9]-[0-9][0-9]-[0-9]\{6\}\).*$/\1 &/' | sort | until_now | tail -n 1 | cut -d ' ' -f 2)
    [ -n "$id" ] || fail BACKUP_NOT_FOUND "$destination has no backup"
    say "id=$id"
  fi
  is_id "$id" || fail INVALID_BACKUP_ID "$id is no name of a backup: expected HOST-YYYY-MM-DD-HHMMSS[-LABEL]"
  [ "$scheme" != restic ] || { fetch_snapshot; return; }
  there "cat $id/info" </dev/null >"$WORK/info" 2>/dev/null || fail BACKUP_NOT_FOUND "$destination has no complete backup $id"
  there "cat $id/manifest" </dev/null >"$WORK/manifest" || fail BACKUP_CORRUPT "$id has no manifest"
  algorithm=$(sed -n 's/^checksum=\([a-z0-9]*\)$/\1/p' "$WORK/info" | head -n 1)
  choice=$(checksum_option "$algorithm")
  [ -n "$choice" ] || [ "$algorithm" = md5 ] || fail RSYNC_TOO_OLD "the rsync here knows no $algorithm"
  sed -n 's/^path=//p' "$WORK/info" | while IFS= read -r path; do is_safe_path "$path" && say "$path"; done >"$WORK/recorded"
  [ "$(sha256sum <"$WORK/manifest" | cut -d ' ' -f 1)" = "$(sed -n 's/^manifest=//p' "$WORK/info" | head -n 1)" ] ||
    say "note=the manifest isn't the one that was written with the backup"
}

# Compares manifest, backup and live files.
COMPARE='
function shape() { return $1 == "f" ? $2 " " $3 : $1 == "L" ? "L " $2 : $1 }
function mark() { return ($1 == "f" ? $4 " " $5 : $1 == "L" ? "" : $5) " " $6 " " $7 }
function tell(what, path, why) { count[what]++; if (count[what] <= shown) line[what, count[what]] = what " " path (why == "" ? "" : "\t" why) }
{ path = $0; for (i = 0; i < 7; i++) path = substr(path, index(path, " ") + 1) }
/^total / { next }
which == "manifest" { shape_of[path] = shape(); mark_of[path] = mark(); next }
which == "backup" {
  in_backup[path] = 1
  if (!(path in shape_of)) { if ($1 != "d" || path != "tree" && path != "dumps") tell("extra", path, "") }
  else if (shape_of[path] != shape()) { bad[path] = 1; tell("corrupt", path, "content") }
  else if (mark_of[path] != mark()) { bad[path] = 1; tell("corrupt", path, "mode, owner or time") }
  next
}
which == "live" {
  in_live[path] = 1
  if (!(path in shape_of)) count["new"]++
  else if (shape_of[path] != shape()) tell("changed", path, "content")
  else if (mark_of[path] != mark()) tell("changed", path, "mode, owner or time")
}
END {
  for (path in shape_of) {
    entries++
    if (!(path in in_backup)) { bad[path] = 1; tell("corrupt", path, "it is gone from the backup") }
    if (live == "yes" && index(path, "tree/") == 1 && !(path in in_live)) tell("missing", path, "")
  }
  kinds = "corrupt missing changed extra new"
  n = split(kinds, kind, " ")
  print "entries=" entries + 0
  for (k = 1; k <= n; k++) if (live == "yes" || kind[k] == "corrupt" || kind[k] == "extra") print kind[k] "=" count[kind[k]] + 0
  for (k = 1; k <= n; k++) for (i = 1; i <= count[kind[k]] && i <= shown; i++) print line[kind[k], i]
}'

verify() {
  reach
  fetch
  [ "$scheme" != restic ] || { verify_snapshot; return; }
  printf 'tree\0' >"$WORK/listed"
  there "[ -d $id/dumps ]" </dev/null && printf 'dumps\0' >>"$WORK/listed"
  listing '' "$base/$id" >"$WORK/backup" || unlisted
  [ "$(cat "$WORK/code")" = 23 ] || outcome "reading the backup"
  live=yes
  : >"$WORK/live"
  if [ "$(sed -n 's/^host=//p' "$WORK/info" | head -n 1)" = "$self" ] && [ "$(sed -n 's/^machine=//p' "$WORK/info" | head -n 1)" = "$machine" ]; then
    # As when it was made, nothing on other file systems, and nothing of what was left out.
    set -- --one-file-system
    while IFS= read -r line; do
      case $line in exclude=*) set -- "$@" "--exclude=${line#exclude=}" ;; esac
    done <"$WORK/info"
    leave_out "$WORK/recorded"
    while IFS= read -r path; do set -- "$@" "--exclude=$(pattern_of "$path")"; done <"$WORK/left_out"
    set -- "$@" "--exclude=${WORK##*/}/"
    tr '\n' '\000' <"$WORK/recorded" >"$WORK/listed"
    extra=
    listing tree/ '' "$@" >"$WORK/live" || unlisted
    # Paths that are gone are what the comparison tells.
    case $(cat "$WORK/code") in 0 | 23 | 24) ;; *) outcome "reading the files" ;; esac
  else
    live=no
    say "note=it was made by another host, so that it isn't compared with the files here"
  fi
  awk -v "shown=$SHOWN" -v "live=$live" "$COMPARE" which=manifest "$WORK/manifest" which=backup "$WORK/backup" which=live "$WORK/live"
}

# Tells what a restore writes, from rsync's items: `first` are all, `second` those that a restore leaves out which spares
# newer files.
PREVIEW='
function tell(what) { count[what]++; if (count[what] <= shown) line[what, count[what]] = what " /" name }
/^f / {
  # Nothing before the name has this.
  name = substr($0, index($0, " tree/") + 6)
  sub(/^\/+/, "", name)
  p = index(name, "//")
  what = substr(name, p + 2)
  name = substr(name, 1, p - 1)
  if (what !~ /^[<>ch][fLDS]/) next
  if (which == "older") { older[name] = 1; next }
  if (substr(what, 3, 9) == "+++++++++") { count["created"]++; next }
  if (substr(what, 1, 1) == "h") { count["created"]++; next }
  tell(name in older ? "overwritten" : "newer")
}
END {
  print "created=" count["created"] + 0
  print "overwritten=" count["overwritten"] + count["newer"] + 0
  print "newer=" count["newer"] + 0
  for (i = 1; i <= count["newer"] && i <= shown; i++) print line["newer", i]
  for (i = 1; i <= count["overwritten"] && i <= shown; i++) print line["overwritten", i]
}'

# Sets what of the backup is restored, and where. Without a target it goes back to where it was.
restore_prepare() {
  if [ -s "$WORK/sources" ]; then
    while IFS= read -r path; do
      is_safe_path "$path" || fail INVALID_PATH "$path is no absolute path without .."
      there "[ -e $(quoted "$id/tree$path") ] || [ -L $(quoted "$id/tree$path") ]" </dev/null || fail NOT_IN_BACKUP "$id has no $path"
    done <"$WORK/sources"
  else
    cp "$WORK/recorded" "$WORK/sources"
  fi
  tr '\n' '\000' <"$WORK/sources" >"$WORK/listed"
  # The attributes of directories above what is restored stay as they are.
  implied=--no-implied-dirs
  if [ -n "$target" ]; then
    implied=
    check_target
    return
  fi
  : >"$WORK/above"
  while IFS= read -r path; do
    link=$(redirected "$path")
    [ -z "$link" ] || fail TARGET_IS_SYMLINK "$link, above $path, is a symlink now, and could lead what root restores elsewhere: restore to a target"
    above=$path
    while above=${above%/*} && [ -n "$above" ] && [ ! -e "$above" ]; do printf '%s\0' "$above" >>"$WORK/above"; done
  done <"$WORK/sources"
}

check_target() {
  is_safe_path "$target" || fail INVALID_PATH "$target is no absolute path without .."
  [ ! -L "$target" ] || fail INVALID_PATH "$target is a symlink"
  [ ! -e "$target" ] || [ -d "$target" ] || fail INVALID_PATH "$target is no directory"
  ! is_here || ! below "$target" "$root" >/dev/null || fail INVALID_PATH "$target lies in the destination"
  # Whoever may write there could lead what root restores elsewhere.
  open=$(exposed "$target")
  [ ! -d "$target" ] || is_private "$target" || open=$target
  [ -z "$open" ] || fail TARGET_UNSAFE "others than root may change $open: expected a target that only root can change"
}

restore_rsync() { # OPTION...
  rsync -aHAXS -r --numeric-ids $choice $extra $implied "$(items tree/)" --from0 "--files-from=$WORK/listed" "$@" "$base/$id/tree/" "${target:-}/" 2>"$WORK/errors"
  echo $? >"$WORK/code"
}

preview() {
  reach
  fetch
  [ "$scheme" != restic ] || { preview_snapshot; return; }
  restore_prepare
  if [ -n "$target" ] && [ ! -d "$target" ]; then
    mkdir -p "$WORK/empty"
    target=$WORK/empty
  fi
  restore_rsync --dry-run >"$WORK/all"
  outcome "the preview"
  restore_rsync --dry-run --update >"$WORK/older"
  outcome "the preview"
  awk -v "shown=$SHOWN" "$PREVIEW" which=older "$WORK/older" which=all "$WORK/all"
}

restore() {
  reach
  lock
  fetch
  [ "$scheme" != restic ] || restore_snapshot || return 0
  restore_prepare
  if [ -n "$target" ]; then
    [ -d "$target" ] || mkdir "$target" 2>"$WORK/errors" || fail TARGET_FAILED "$target can't be made: $(complaint "$WORK/errors")"
    set --
  else
    mkdir -p "$REPLACED" && kept=$(mktemp -d "$REPLACED/$id-$(date +%Y-%m-%d-%H%M%S)-XXXXXX") || fail TARGET_FAILED "$REPLACED can't be written"
    set -- --backup "--backup-dir=$kept"
    if [ -s "$WORK/above" ]; then
      # Directories above it that are missing come back as they were.
      rsync -aAX --numeric-ids $extra --no-implied-dirs --from0 "--files-from=$WORK/above" "$base/$id/tree/" / 2>"$WORK/errors"
      echo $? >"$WORK/code"
      outcome "the directories above"
    fi
  fi
  restore_rsync "$@" | awk -v top=tree/ -v "written=$WORK/entries" "$ENTRIES" >"$WORK/entries"
  if [ -z "$target" ]; then
    if rmdir "$kept" 2>/dev/null; then rmdir "$REPLACED" 2>/dev/null; else say "kept=$kept"; fi
  fi
  outcome "the restore"
  if [ -n "$target" ] && there "[ -d $id/dumps ]" </dev/null; then
    rsync -a $extra "$base/$id/dumps" "$target/" 2>"$WORK/errors"
    echo $? >"$WORK/code"
    outcome "the restore of the dumps"
  fi
  awk '{ path = $0; for (i = 0; i < 7; i++) path = substr(path, index(path, " ") + 1) }
    which == "manifest" { if ($1 == "f") sum[path] = $2; next }
    $1 == "total" { print "restored=" $5; print "bytes=" $6; next }
    $1 == "f" && $2 != "?" && path in sum && sum[path] != $2 && n++ < 20 { print "corrupt " path "\tthe file differs from what was backed up" }
  ' which=manifest "$WORK/manifest" which=restored "$WORK/entries"
}

# One compressed archive of /etc.
archive_etc() {
  case $label in *[!A-Za-z0-9._-]*) fail INVALID_LABEL "a label has only A-Z a-z 0-9 . _ -" ;; esac
  [ "$scheme" != restic ] || fail INVALID_DESTINATION "an archive is no snapshot of restic: expected another destination, or a backup of /etc"
  reach
  lock
  now=$(date +%s)
  while :; do
    file=$self-etc-$(stamp "$now")${label:+-$label}.tar.gz
    there "[ -e $file ]" </dev/null || break
    now=$((now + 1))
  done
  options=
  tar --version 2>/dev/null | grep -q GNU && options='--numeric-owner --acls --xattrs --one-file-system'
  there 'rm -f .incomplete-*-etc-*.tar.gz' </dev/null
  {
    tar $options -C / -cf - etc 2>"$WORK/errors"
    echo $? >"$WORK/code"
  } | gzip | there "cat >.incomplete-$file" 2>"$WORK/errors2" || fail DESTINATION_FULL "the archive can't be written: $(complaint "$WORK/errors2")"
  case $(cat "$WORK/code") in
    0) ;;
    1) say "note=files changed while they were read: $(complaint "$WORK/errors")" ;;
    *) fail TAR_FAILED "$(complaint "$WORK/errors")" ;;
  esac
  there "gzip -t <.incomplete-$file && mv .incomplete-$file $file && wc -c <$file" </dev/null >"$WORK/size" 2>"$WORK/errors" || fail DESTINATION_FULL "the archive can't be written: $(complaint "$WORK/errors")"
  say "archive=$file"
  say "bytes=$(tr -d ' ' <"$WORK/size")"
}

# Takes one option of the command line or one line of a configuration.
option() { # KEY VALUE
  case $1:$2 in
    path:*[[:cntrl:]]*) fail INVALID_PATH "a path has a control character" ;;
    *[[:cntrl:]]*) fail INVALID_ARGUMENTS "the $1 has a control character" ;;
  esac
  case $1 in
    destination) destination=$2 ;;
    label) label=$2 ;;
    target) target=$2 ;;
    full) full=yes; say "full=yes" >>"$WORK/request" ;;
    dump) dumps="$dumps $2"; say "dump=$2" >>"$WORK/request" ;;
    exclude) say "exclude=$2" >>"$WORK/request" ;;
    path)
      while :; do case $2 in ?*/) set -- path "${2%/}" ;; *) break ;; esac; done
      say "$2" >>"$WORK/sources"; say "path=$2" >>"$WORK/request" ;;
    keep_daily) keep_daily=$2 ;;
    keep_weekly) keep_weekly=$2 ;;
    keep_monthly) keep_monthly=$2 ;;
    schedule) ;;
    *) fail INVALID_ARGUMENTS "$1 is unknown" ;;
  esac
}

