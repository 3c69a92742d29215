//! `/proc/PID/stat`, see proc_pid_stat(5).

/// USER_HZ, the unit of the times of processes. It is the same on every architecture that distributions support.
pub const TICKS_PER_SECOND: u64 = 100;

/// The kernel's flag of its own threads (PF_KTHREAD of include/linux/sched.h).
const KERNEL_THREAD: u64 = 0x0020_0000;

/// The parts of `/proc/PID/stat` that are used.
#[derive(Clone, Debug, PartialEq)]
pub struct Stat {
    /// The number of the process.
    pub pid: u32,
    /// The first 15 bytes of the program's name. Kernel threads may have longer names.
    pub name: String,
    /// The state as in ps(1).
    pub state: char,
    /// The number of the parent, 0 where it has none that is visible.
    pub parent: u32,
    /// True where it is a thread of the kernel.
    pub is_kernel_thread: bool,
    /// The user and system time in clock ticks, with virtual machines.
    pub ticks: u64,
    /// The number of threads.
    pub threads: u64,
    /// The start after boot, in clock ticks. It distinguishes a new process from an older one with the same PID.
    pub started: u64,
    /// The resident memory in pages. The file doesn't say their size.
    pub resident: u64,
}

impl Stat {
    /// Says whether it has ended, and its parent hasn't noticed that. A process whose first thread has ended shows the same
    /// state, and goes on while it has other threads.
    pub fn is_zombie(&self) -> bool {
        self.state == 'Z' && self.threads <= 1
    }

    /// Parses the file. The name ends at the last parenthesis, because it may hold spaces, parentheses and line breaks.
    pub fn parse(text: &str) -> Option<Self> {
        let (head, rest) = text.rsplit_once(')')?;
        let (pid, name) = head.split_once('(')?;
        let fields = rest.split_whitespace().collect::<Vec<_>>();
        // The fields have the numbers of proc_pid_stat(5). The state, number 3, is the first field after the name.
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        Some(Self {
            pid: pid.trim().parse().ok()?,
            name: name.replace(char::is_control, " "),
            state: fields.first()?.chars().next()?,
            parent: field(4)?.try_into().ok()?,
            is_kernel_thread: field(9)? & KERNEL_THREAD != 0,
            ticks: field(14)?.checked_add(field(15)?)?,
            threads: field(20)?,
            started: field(22)?,
            resident: field(24)?,
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn line(pid: u32, name: &str, ticks: u64, started: u64) -> String {
        format!(
            "{pid} ({name}) S 1 1 1 0 -1 0 0 0 0 0 {ticks} 0 9 9 20 0 3 0 {started} 4096 25 18446744073709551615 1\n"
        )
    }

    #[test]
    fn a_name_ends_at_the_last_parenthesis() {
        for name in
            ["bash", "odd (name) x", ") S 1", "((bash process)", "a) R 5 (b", "", "(sd-pam)", "two words"]
        {
            let stat = Stat::parse(&line(7, name, 5, 100)).unwrap();
            assert_eq!((stat.pid, stat.name.as_str(), stat.state, stat.parent), (7, name, 'S', 1));
            assert_eq!((stat.ticks, stat.threads, stat.started, stat.resident), (5, 3, 100, 25));
            assert!(!stat.is_kernel_thread);
        }
        assert_eq!(Stat::parse(&line(7, "a\nb", 5, 100)).unwrap().name, "a b");
    }

    #[test]
    fn a_thread_of_the_kernel_is_known_by_its_flag() {
        // Recorded on Linux 6.18.
        let kthreadd =
            "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 1 0 0 18446744073709551615 0";
        assert!(Stat::parse(kthreadd).unwrap().is_kernel_thread);
    }

    #[test]
    fn a_process_whose_first_thread_has_ended_goes_on_with_the_others() {
        // Recorded on Linux 6.18: the main function calls pthread_exit(3).
        let first_ended = "4622 (z) Z 1 4558 10352 0 -1 4227084 124 0 0 0 0 0 0 0 20 0 2 0 63376 0 0 18446744073709551615 0";
        assert!(!Stat::parse(first_ended).unwrap().is_zombie());
        let ended = first_ended.replace(" 20 0 2 0 ", " 20 0 1 0 ");
        assert!(Stat::parse(&ended).unwrap().is_zombie());
    }

    #[test]
    fn what_is_not_a_process_is_left_out() {
        let whole = line(7, "bash", 5, 100);
        for cut in 0..whole.find("4096 25").unwrap() {
            assert_eq!(Stat::parse(&whole[..cut]), None, "{cut}");
        }
        for text in ["7 bash S 1", "x (bash) S 1 1", "(bash)", ")(", &whole.replace(" 5 0 9", " x 0 9")] {
            assert_eq!(Stat::parse(text), None, "{text:?}");
        }
    }
}
