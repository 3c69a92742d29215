//! `/proc/PID/limits`: those that are close to being reached, and those that aren't the usual ones.

/// The usual soft limits of programs on distributions with systemd. Limits that follow the size of the machine's memory
/// (processes, pending signals) have no usual value.
const USUAL: [(&str, &[&str]); 11] = [
    ("cpu time", &["unlimited"]),
    ("file size", &["unlimited"]),
    ("data size", &["unlimited"]),
    ("stack size", &["8388608", "unlimited"]),
    ("core file size", &["0", "unlimited"]),
    ("open files", &["1024"]),
    ("locked memory", &["65536", "8388608", "67108864", "unlimited"]),
    ("address space", &["unlimited"]),
    ("msgqueue size", &["819200"]),
    ("nice priority", &["0"]),
    ("realtime priority", &["0"]),
];

/// The part of the limit of open files from which on it is close to being reached.
const CLOSE: f64 = 0.8;

/// The limits to show, each as a few words. `open` is the number of open files, where it is known.
pub(crate) fn remarkable(text: &str, open: Option<usize>) -> Vec<String> {
    let soft = text.lines().filter_map(limit);
    soft.filter_map(|(name, soft)| {
        let (_, usual) = USUAL.iter().find(|(known, _)| *known == name)?;
        let most = soft.parse::<f64>().ok().filter(|_| name == "open files");
        match open.zip(most) {
            Some((open, most)) if open as f64 >= most * CLOSE => {
                Some(format!("{name}: {open} of {soft} in use"))
            }
            _ if usual.contains(&soft) => None,
            _ => Some(format!("{name}: {soft}")),
        }
    })
    .collect()
}

/// The name and the soft limit of a line. Names hold single blanks, and at least two stand behind them.
fn limit(line: &str) -> Option<(&str, &str)> {
    let (name, values) = line.strip_prefix("Max ")?.split_once("  ")?;
    Some((name, values.split_whitespace().next()?))
}

#[cfg(test)]
mod tests {
    use super::remarkable;

    /// Recorded from /proc/PID/limits of nginx on Linux 6.18.
    const LIMITS: &str = "\
Limit                     Soft Limit           Hard Limit           Units     
Max cpu time              unlimited            unlimited            seconds   
Max file size             unlimited            unlimited            bytes     
Max data size             unlimited            unlimited            bytes     
Max stack size            8388608              unlimited            bytes     
Max core file size        unlimited            unlimited            bytes     
Max resident set          unlimited            unlimited            bytes     
Max processes             96282                96282                processes 
Max open files            1024                 524288               files     
Max locked memory         8388608              8388608              bytes     
Max address space         unlimited            unlimited            bytes     
Max file locks            unlimited            unlimited            locks     
Max pending signals       96282                96282                signals   
Max msgqueue size         819200               819200               bytes     
Max nice priority         0                    0                    
Max realtime priority     0                    0                    
Max realtime timeout      unlimited            unlimited            us        
";

    #[test]
    fn usual_limits_are_left_out() {
        assert!(remarkable(LIMITS, Some(818)).is_empty());
        assert!(remarkable("", Some(1)).is_empty() && remarkable("garbage\nMax\nMax x", None).is_empty());
    }

    #[test]
    fn others_are_told_and_so_is_what_is_nearly_used_up() {
        assert_eq!(remarkable(LIMITS, Some(820)), ["open files: 820 of 1024 in use"]);
        let changed = LIMITS
            .replace("1024                 524288", "65536                524288")
            .replace("data size             unlimited", "data size             1048576  ");
        assert_eq!(remarkable(&changed, None), ["data size: 1048576", "open files: 65536"]);
    }
}
