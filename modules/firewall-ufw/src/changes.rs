//! Changes by ufw's own command. It keeps a rule for the next start and gives it to the kernel at once.

use linux_sysadmin_sdk::firewall::{Action, After, Direction, FirewallRule, Kernel, Proposal, Ruleset};
use linux_sysadmin_sdk::{prelude::*, text};

use crate::user_rules::{self, Family, IPV4, IPV6};
use crate::{CONFIG, DEFAULTS, RULES, RULES_OF_IPV6, both, config, is_loaded, read, tuple};

const ENABLE: CommandLine = CommandLine::new("ufw --force enable");
const DISABLE: CommandLine = CommandLine::new("ufw disable");
const RELOAD: CommandLine = CommandLine::new("ufw reload");

/// What follows `ufw` or `ufw delete`.
macro_rules! rule_pattern {
    ($verb:literal, $comment:literal) => {
        concat!(
            "ufw ",
            $verb,
            "(allow|deny|reject) (in|out) [proto (tcp|udp)] from (any|<address>|<cidr>) \
             to (any|<address>|<cidr>) [port (<port>|<port>:<port>)]",
            $comment
        )
    };
}

/// Asks for ufw's commands, and for its files, whose copies put them back byte for byte.
pub(crate) fn granted(module: Module) -> Module {
    let files =
        [(RULES, "ufw's rules"), (RULES_OF_IPV6, "its rules for IPv6"), (CONFIG, "whether ufw is enabled")];
    module
        .command(CommandGrant::change(rule_pattern!("", " [comment <text>]"), Risk::Moderate, "add a rule"))
        .command(CommandGrant::change(rule_pattern!("delete ", ""), Risk::High, "remove a rule"))
        .command(ENABLE.change(Risk::Critical, "make ufw active"))
        .command(DISABLE.change(Risk::Critical, "make ufw inactive"))
        .command(RELOAD.change(Risk::High, "have the kernel's rules as the files have them after an undo"))
        .paths(files.map(|(path, what)| PathGrant::write(path, &format!("{what}, which an undo puts back"))))
}

/// ufw's files and state.
struct State {
    config: String,
    defaults: String,
    ipv4: String,
    /// `None` where ufw has no such file.
    ipv6: Option<String>,
    is_loaded: bool,
}

impl State {
    fn read(kernel: &Kernel, cx: &Context) -> Result<Self> {
        let [config, defaults, ipv4, ipv6] = read(cx, [CONFIG, DEFAULTS, RULES, RULES_OF_IPV6]);
        let ipv6 = match ipv6 {
            Ok(text) => Some(text),
            Err(problem) if problem.code == "FILE_NOT_FOUND" => None,
            Err(problem) => return Err(problem),
        };
        let (config, defaults, ipv4) = (config?, defaults?, ipv4?);
        Ok(Self { config, defaults, ipv4, ipv6, is_loaded: is_loaded(kernel) })
    }

    fn has_ipv6(&self) -> bool {
        self.ipv6.is_some() && config::filters_ipv6(&self.defaults)
    }

    /// The texts of the families that the rule concerns.
    fn texts(&self, rule: &FirewallRule) -> Vec<(Family, &str)> {
        let ipv6 = self.ipv6.as_deref().filter(|_| self.has_ipv6()).map(|text| (IPV6, text));
        match rule.is_v6() {
            Some(true) => ipv6.into_iter().collect(),
            Some(false) => vec![(IPV4, &self.ipv4)],
            None => std::iter::once((IPV4, self.ipv4.as_str())).chain(ipv6).collect(),
        }
    }

    /// The kernel's rules with these texts in place of ufw's own.
    fn after(&self, kernel: &Kernel, texts: Vec<(Family, String)>) -> After {
        if !self.is_loaded {
            return After::Same;
        }
        let mut ruleset = kernel.ruleset.clone();
        for (family, text) in texts {
            let rules = user_rules::input(&text, family);
            match (rules, ruleset.chain_mut(family.name, "filter", family.input)) {
                (Some(rules), Some(chain)) => *chain = rules,
                _ => return After::Unknown,
            }
        }
        After::Rules(ruleset)
    }

    /// The same with the texts as they are, since the kernel prints its rules in other words.
    fn before(&self, kernel: &Kernel, rule: &FirewallRule) -> Option<Ruleset> {
        let texts = self.texts(rule).into_iter().map(|(family, text)| (family, text.to_owned()));
        match self.after(kernel, texts.collect()) {
            After::Rules(ruleset) => Some(ruleset),
            After::Same | After::Unknown => None,
        }
    }

    /// Steps that write the files as they are.
    fn kept(&self) -> Vec<Step> {
        let ipv6 = self.ipv6.iter().map(|text| Step::write(RULES_OF_IPV6, text.as_str()));
        std::iter::once(Step::write(RULES, self.ipv4.as_str())).chain(ipv6).collect()
    }
}

pub(crate) fn adding(rule: &FirewallRule, kernel: &Kernel, cx: &Context) -> Result<Proposal> {
    let state = State::read(kernel, cx)?;
    if rule.is_v6() == Some(true) && !state.has_ipv6() {
        let message = "ufw doesn't filter IPv6 here (IPV6=no in /etc/default/ufw)";
        return Err(Problem::new("IPV6_NOT_FILTERED", linux_sysadmin_sdk::Category::State, message));
    }
    if rule.protocol == "any" && rule.port.as_ref().is_some_and(|port| port.contains(':')) {
        let message = "ufw takes a range of ports with one protocol only: expected tcp or udp";
        return Err(Problem::validation("PROTOCOL_NEEDED", message));
    }
    let known = both(tuple::rules(&state.ipv4), state.ipv6.as_deref().map_or_else(Vec::new, tuple::rules));
    if let Some(known) = known.iter().find(|known| known.is(rule)) {
        let mut proposal = Proposal::new("", After::Same);
        let comment = known.rule.as_ref().and_then(|known| known.comment.as_ref());
        if rule.comment.is_some() && comment != rule.comment.as_ref() {
            let comment = comment.map_or("none", String::as_str);
            proposal.notes.push(format!("its comment is another one: {comment:?}"));
        }
        return Ok(proposal);
    }
    // ufw has one rule for the same packets. It would put this one in the other's place, and an undo would leave neither.
    let for_the_same =
        |known: &&FirewallRule| FirewallRule { action: rule.action, ..(*known).clone() }.is_same(rule);
    if let Some(other) = known.iter().filter_map(|known| known.rule.as_ref()).find(for_the_same) {
        let message = format!("ufw has `{}` for the same packets, and keeps one rule only", other.in_words());
        return Err(Problem::new("RULE_CONTRADICTS", linux_sysadmin_sdk::Category::State, message)
            .remedy("Remove that rule first, by fw_remove_rule"));
    }
    let texts = state.texts(rule);
    let texts = texts.into_iter().map(|(family, text)| (family, user_rules::with(text, rule, family)));
    let after = state.after(kernel, texts.collect());
    let step = Step::run(command(rule, false)).undo(command(rule, true)).uninterruptible();
    Ok(Proposal {
        steps: vec![step],
        after_undo: vec![RELOAD.command().as_root()],
        kept: state.kept(),
        before: state.before(kernel, rule),
        ..Proposal::new(format!("Have ufw {}", rule.in_words()), after)
    })
}

pub(crate) fn removing(rule: &FirewallRule, kernel: &Kernel, cx: &Context) -> Result<Proposal> {
    let state = State::read(kernel, cx)?;
    let texts = state.texts(rule);
    let texts = texts.into_iter().map(|(family, text)| (family, user_rules::without(text, rule)));
    let after = state.after(kernel, texts.collect());
    let known = both(tuple::rules(&state.ipv4), state.ipv6.as_deref().map_or_else(Vec::new, tuple::rules));
    let known = known.into_iter().filter_map(|known| known.rule).find(|known| known.is_same(rule));
    let Some(known) = known else { return Ok(Proposal::new("", After::Same)) };
    // ufw itself refuses such words where the undo gives it the comment again.
    let cannot_be_said = |comment: &String| {
        comment.starts_with('-') || comment.contains(['\'', '\\']) || text::has_hidden(comment)
    };
    if known.comment.as_ref().is_some_and(cannot_be_said) {
        let message = "ufw wouldn't take the rule's comment again, so that an undo couldn't put it back";
        return Err(Problem::new("COMMENT_NOT_PLAIN", linux_sysadmin_sdk::Category::State, message)
            .remedy("`ufw status numbered` shows the rule's number, and `ufw delete NUMBER` removes it"));
    }
    let step = Step::run(command(rule, true)).undo(command(&known, false)).uninterruptible();
    Ok(Proposal {
        steps: vec![step],
        after_undo: vec![RELOAD.command().as_root()],
        kept: state.kept(),
        before: state.before(kernel, rule),
        ..Proposal::new(format!("Remove ufw's rule `{}`", rule.in_words()), after)
    })
}

pub(crate) fn enabling(kernel: &Kernel, cx: &Context) -> Result<Proposal> {
    let state = State::read(kernel, cx)?;
    if state.is_loaded && config::is_enabled(&state.config) {
        return Ok(Proposal::new("", After::Same));
    }
    let policy = config::input_policy(&state.defaults);
    let mut after = Some(kernel.ruleset.clone());
    let ipv6 = state.ipv6.as_deref().filter(|_| state.has_ipv6()).map(|text| (IPV6, text));
    for (family, text) in std::iter::once((IPV4, state.ipv4.as_str())).chain(ipv6) {
        let table = user_rules::table(text, family, policy);
        after = after.zip(table).map(|(after, table)| Ruleset::with_table(after, table));
    }
    let kept = std::iter::once(Step::write(CONFIG, state.config.as_str())).chain(state.kept());
    Ok(Proposal {
        steps: vec![
            Step::run(ENABLE.command().as_root()).undo(DISABLE.command().as_root()).uninterruptible(),
        ],
        kept: kept.collect(),
        ..Proposal::new("Make ufw active, now and at each start", after.map_or(After::Unknown, After::Rules))
    })
}

pub(crate) fn disabling(kernel: &Kernel, cx: &Context) -> Result<Proposal> {
    let state = State::read(kernel, cx)?;
    if !state.is_loaded && !config::is_enabled(&state.config) {
        return Ok(Proposal::new("", After::Same));
    }
    let step = Step::run(DISABLE.command().as_root()).undo(ENABLE.command().as_root()).uninterruptible();
    Ok(Proposal {
        steps: vec![step],
        ..Proposal::new("Make ufw inactive, now and at each start: every packet passes it", After::Unknown)
    })
}

/// ufw's command line for a rule.
fn command(rule: &FirewallRule, is_delete: bool) -> Command {
    let action = match rule.action {
        Action::Allow => "allow",
        Action::Deny => "deny",
        Action::Reject => "reject",
    };
    let direction = if rule.direction == Direction::In { "in" } else { "out" };
    let mut command = Command::new("ufw");
    if is_delete {
        command = command.arg("delete");
    }
    command = command.args([action, direction]);
    if rule.protocol != "any" {
        command = command.args(["proto", &rule.protocol]);
    }
    let address = |address: &Option<String>| address.as_deref().unwrap_or("any").to_owned();
    command =
        command.args(["from".to_owned(), address(&rule.source), "to".to_owned(), address(&rule.destination)]);
    if let Some(port) = &rule.port {
        command = command.args(["port", port]);
    }
    if let Some(comment) = rule.comment.as_ref().filter(|_| !is_delete) {
        command = command.args(["comment", comment]);
    }
    command.as_root().duration(linux_sysadmin_sdk::DurationCategory::Quick)
}
