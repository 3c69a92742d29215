# Looks at processes, or sends a signal to them. Data is only ever an argument.
#
# $1: look, or act. $2: the signal's number. $3: the seconds to wait for the end. $4: 1 where what is left is killed then.
# $5: 1 where descendants are meant as well. The others: PID:START, with the start in clock ticks since boot.
#
# The answer has a line "PID START WORD [MORE]" for each process. An exit code of 3 means that no signal was sent.
set -f
trap '' HUP INT QUIT PIPE TERM
mode=$1 signal=$2 wait=$3 kill=$4 tree=$5
shift 5
given=$*

# echo would take a backslash in a command line for a line break, and the line for one of this script's.
say() { printf '%s\n' "$*"; }

# Reads what the kernel says of a process. Its name stands in parentheses and may hold anything, lines too.
stat() {
  line=
  { while IFS= read -r part || [ -n "$part" ]; do line="$line$part "; done < "/proc/$1/stat"; } 2> /dev/null
  case $line in *') '*) ;; *) return 1 ;; esac
  fields ${line##*) }
  [ "$state" != X ]
}
# A process whose first thread has ended goes on while it has others. The kernel calls it Z all the same, and it is L here.
fields() {
  state=$1 parent=$2 flags=$7 start=${20}
  if [ "$state" = Z ] && [ "${18}" -gt 1 ]; then state=L; fi
}

# The processes that carry this script: its shell, sudo, the server or sshd, and so on up to the first one of all.
own=' 1 ' pid=$$
while stat "$pid"; do
  own="$own$pid "
  [ "$parent" -gt 1 ] || break
  pid=$parent
done

# Sets $why to the reason why the process $1 that began at $2 gets no signal.
refusal() {
  why=
  if ! stat "$1"; then why=gone
  elif [ "$start" != "$2" ]; then why=other
  elif [ $((flags / 2097152 % 2)) = 1 ]; then why=kernel
  else case $own in *" $1 "*) why=own ;; esac
  fi
}
may_signal() {
  refusal "$1" "$2"
  if [ -z "$why" ] && ! kill -s 0 "$1" 2> /dev/null; then
    refusal "$1" "$2"
    why=${why:-denied}
  fi
}

# Sends the signal $1 to each process of $2. The shell starts nothing between its look at the start and the signal. A process
# that somebody else had stopped before this script stops it is noted in $stopped.
deliver() {
  for entry in $2; do
    refusal "${entry%:*}" "${entry#*:}"
    if [ -n "$why" ]; then continue; fi
    if [ "$1$state" = STOPT ]; then stopped="$stopped$entry "; fi
    if kill -s "$1" "${entry%:*}" 2> /dev/null; then signalled="$signalled$entry "
    elif stat "${entry%:*}"; then denied="$denied$entry "
    fi
  done
}

# Adds the descendants of the processes in $all to it and to $new. Sets $moving where one of them isn't stopped.
walk() {
  new= moving= table= live=' '
  set +f; set -- /proc/[0-9]*; set -f
  for path; do
    pid=${path#/proc/}
    if stat "$pid"; then table="$table $pid:$start,$parent,$state"; fi
  done
  for row in $table; do
    entry=${row%%,*}
    case " $all" in *" $entry "*) live="$live$entry " ;; *) continue ;; esac
    case " $denied" in *" $entry "*) continue ;; esac
    case $row in *,R | *,S) moving=1 ;; esac
  done
  grown=1
  while [ -n "$grown" ]; do
    grown=
    for row in $table; do
      entry=${row%%,*} parent=${row#*,}
      parent=${parent%,*}
      case $live in
        *" $entry "*) ;;
        *" $parent:"*) live="$live$entry " all="$all$entry " new="$new$entry " grown=1 ;;
      esac
    done
  done
}

# Stops the processes of $1, until nothing new appears among the descendants. What is stopped starts nothing.
freeze() {
  deliver STOP "$1"
  rounds=0
  while [ "$tree" = 1 ] && [ "$rounds" -lt 40 ]; do
    walk
    if [ -z "$new$moving" ]; then break; fi
    deliver STOP "$new"
    rounds=$((rounds + 1))
  done
}

# Sets $left to the processes that run, and $dead to those that have ended and that their parents haven't reaped.
remaining() {
  left= dead=
  for entry in $all; do
    if stat "${entry%:*}" && [ "$start" = "${entry#*:}" ]; then
      case " $denied" in *" $entry "*) continue ;; esac
      if [ "$state" = Z ]; then dead="$dead$entry "; else left="$left$entry "; fi
    fi
  done
}

now() { read -r up idle < /proc/uptime; now=${up%.*}${up#*.}; }

# Waits for the end of all, at most $1 hundredths of a second. What they start meanwhile gets the signal $2. Most parents
# reap their children at once, so those that have ended are waited for at most a second.
await() {
  now
  until=$((now + $1)) reaped=
  while :; do
    if [ "$tree" = 1 ]; then walk; deliver "$2" "$new"; fi
    remaining
    now
    if [ -z "$left$dead" ] || [ "$now" -ge "$until" ]; then return; fi
    if [ -z "$left" ]; then
      reaped=${reaped:-$((now + 100))}
      if [ "$now" -ge "$reaped" ]; then return; fi
    fi
    sleep 0.05 2> /dev/null || sleep 1
  done
}

one_line() { tr '\0\n\t' '   ' < "$1" 2> /dev/null | head -c "$2"; }

# The words of a command line, with the separator of units between them, so that the host can tell where one ends.
words_of() { tr '\037\0\n\t' ' \037  ' < "$1" 2> /dev/null | head -c "$2"; }

# Sets $uids and $group to the process that $1 is a thread of.
owners() {
  uids= group=
  { while read -r name value; do
    case $name in
      Tgid:) group=$value ;;
      Uid:) words $value; break ;;
    esac
  done < "/proc/$1/status"; } 2> /dev/null
}
words() { uids="$1 $2 $3 $4"; }

# Sets $cgroup to the path of the control group in which systemd keeps the process.
place() {
  cgroup=
  { while IFS= read -r row; do
    case $row in
      0::*) cgroup=${row#0::}; if [ "$cgroup" != / ]; then break; fi ;;
      *:name=systemd:*) cgroup=${row#*:name=systemd:} ;;
    esac
  done < "/proc/$1/cgroup"; } 2> /dev/null
}

# Describes a process in lines that begin with a blank. Only the first ones have command lines, because those take two
# programs each, and there may be thousands.
users=' ' described=0
describe() {
  owners "$1"
  place "$1"
  uid=${uids%% *}
  case $users in
    *" $uid="*) ;;
    *) users="$users$uid=$(id -nu -- "$uid" 2> /dev/null || say "$uid") " ;;
  esac
  user=${users#*" $uid="}
  command=
  described=$((described + 1))
  if [ "$described" -le 120 ]; then command=$(words_of "/proc/$1/cmdline" 400); fi
  name=
  { IFS= read -r name < "/proc/$1/comm"; } 2> /dev/null
  if [ -z "$command" ]; then command="[$name]"; fi
  say " uids $uids"
  say " user ${user%% *}"
  say " thread-of $group"
  say " cgroup $cgroup"
  say " name $name"
  say " command $command"
}

all= denied= signalled= killed= stopped=
if [ "$mode" = look ]; then
  sed -n 's/^btime /boot /p' /proc/stat
  for entry in $given; do
    may_signal "${entry%:*}" "${entry#*:}"
    say "${entry%:*} ${entry#*:} ${why:-given}"
    case $why in gone | other) ;; *) all="$all$entry "; describe "${entry%:*}" ;; esac
  done
  if [ "$tree" = 1 ]; then
    walk
    for entry in $new; do
      may_signal "${entry%:*}" "${entry#*:}"
      case $why in
        '' | denied)
          say "${entry%:*} ${entry#*:} ${why:-descendant}"
          if [ "$described" -lt 1000 ]; then describe "${entry%:*}"; fi ;;
      esac
    done
  fi
  exit 0
fi

refusals=
for entry in $given; do
  may_signal "${entry%:*}" "${entry#*:}"
  case $why in
    '') all="$all$entry " ;;
    gone) say "${entry%:*} ${entry#*:} gone" ;;
    *) refusals="$refusals${entry%:*} ${entry#*:} $why
" ;;
  esac
done
if [ -n "$refusals" ]; then printf %s "$refusals"; exit 3; fi

case $signal in
  # Nothing ends by these, and what is stopped would not go on.
  0 | 17 | 18 | 20 | 21 | 22 | 23 | 28)
    if [ "$tree" = 1 ]; then walk; fi
    deliver "$signal" "$all" ;;
  19) freeze "$all" ;;
  *)
    if [ "$tree" = 1 ]; then freeze "$all"; signalled=; fi
    deliver "$signal" "$all"
    # What was stopped before stays so, unless its end is meant: it has to go on for that.
    if [ "$tree" = 1 ] && [ "$signal" != 9 ]; then
      going= keep=$stopped
      if [ "$wait" -gt 0 ] || [ "$signal" = 15 ]; then keep=; fi
      for entry in $all; do
        case " $keep" in *" $entry "*) ;; *) going="$going$entry " ;; esac
      done
      deliver CONT "$going"
    fi ;;
esac
if [ "$wait" -gt 0 ]; then
  await $((wait * 100)) "$signal"
  if [ "$kill" = 1 ] && [ -n "$left" ]; then
    if [ "$tree" = 1 ]; then freeze "$left"; remaining; fi
    killed=$left
    deliver KILL "$killed"
    await 200 9
  fi
fi
for entry in $all; do
  pid=${entry%:*}
  word=ended more=
  if stat "$pid" && [ "$start" = "${entry#*:}" ]; then
    case $state in
      Z) word=zombie more=" $parent" ;;
      D) word=blocked more=" $(one_line "/proc/$pid/wchan" 60)" ;;
      T | t) word=stopped ;;
      *) word=running ;;
    esac
    if [ "$wait" = 0 ] && [ "$word" != zombie ]; then word=sent more=; fi
    case " $denied" in *" $entry "*) word=denied more= ;; esac
  else
    case " $killed" in *" $entry "*) word=killed ;; esac
    case " $signalled" in *" $entry "*) ;; *) word=gone ;; esac
    if [ "$signal" = 9 ] && [ "$word" = ended ]; then word=killed; fi
  fi
  say "$pid ${entry#*:} $word$more"
done
