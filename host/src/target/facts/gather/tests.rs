use super::*;

/// As a command that succeeded.
fn said(stdout: impl Into<Vec<u8>>) -> Result<Output, Problem> {
    let stdout = stdout.into();
    Ok(Output {
        exit_code: 0,
        stdout_bytes: stdout.len() as u64,
        stdout_lines: 0,
        stdout,
        stderr: Vec::new(),
        truncated: false,
        duration: Duration::ZERO,
    })
}

#[tokio::test]
async fn both_ways_give_the_same_facts() {
    for question in questions() {
        println!("Q {}", serde_json::to_string(&(question.program.clone(), question.args.clone())).unwrap());
    }
    let local = Local::new();
    let questions = questions();
    let running = questions.iter().map(|question| local.run(question, Rights::NONE));
    let answers = futures_util::future::join_all(running).await;
    let variable = |name: &str| std::env::var(name).ok();
    let session = Session {
        home: variable("HOME"),
        shell: variable("SHELL"),
        ssh_connection: variable("SSH_CONNECTION"),
    };
    let by_commands = read(answers, session).unwrap();
    println!("{by_commands:#?}");
    assert_eq!(by_commands, gather_here(&local).await);
}
