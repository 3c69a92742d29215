use std::time::Duration;

use super::*;
use crate::Overrides;
use crate::test_connection::{Fate, TestConnection};

fn commands(last: &[&str]) -> [Command; 2] {
    let command =
        |words: &[&str]| Command::new(words[0], words[1..].iter().copied(), Duration::from_secs(20));
    [command(&["printf", "x"]), command(last)]
}

#[tokio::test]
async fn a_pipeline_looks_and_changes() {
    let target = Target::local(Overrides::default());
    for outputs in
        [target.run_pipeline(&commands(&["cat"])).await, target.act_pipeline(&commands(&["cat"])).await]
    {
        let outputs = outputs.unwrap();
        assert_eq!((outputs.len(), outputs[1].stdout.as_slice()), (2, &b"x"[..]));
    }
    for refused in [target.run_pipeline(&[]).await, target.act_pipeline(&[]).await] {
        assert_eq!(refused.unwrap_err().code, "INVALID_PIPELINE");
    }
}

#[tokio::test]
async fn a_change_by_a_pipeline_is_uncertain_where_the_connection_is_lost_and_a_look_is_not() {
    let line = TestConnection::new(|command| match command.program.as_str() {
        "cat" => Fate::NeverAnswers,
        _ => Fate::Says(0, "found\n".to_owned()),
    });
    let target = Target::over_test_connection(&line);
    let problem = target.act_pipeline(&commands(&["cat"])).await.unwrap_err();
    assert!(
        problem.is_uncertain() && problem.message.contains("in the middle of printf | cat:"),
        "{problem}"
    );
    let problem = target.run_pipeline(&commands(&["cat"])).await.unwrap_err();
    assert_eq!(problem.code, "CONNECTION_LOST");
    let outputs = target.run_pipeline(&commands(&["sort"])).await.unwrap();
    assert_eq!((outputs.len(), outputs[1].stdout.as_slice()), (2, &b"found\n"[..]));
}

#[tokio::test]
async fn a_change_by_a_pipeline_is_stopped_when_it_is_told_to() {
    let target = Target::local(Overrides::default());
    let stop = CancellationToken::new();
    let output = std::sync::Arc::new(host_base::output_buffer::OutputBuffer::default());
    let mut commands = commands(&["sh", "-c", "echo begun; exec sleep 86399.91"]);
    commands[1].output_buffer = Some(output.clone());
    let stopping = async {
        while output.lines_from(0, false).text != "begun\n" {
            tokio::task::yield_now().await;
        }
        stop.cancel();
    };
    let (stopped, ()) = tokio::join!(target.act_pipeline_unless(&commands, &stop), stopping);
    let problem = stopped.unwrap_err();
    assert_eq!((problem.code.as_str(), problem.message.as_str()), ("CANCELLED", "printf | sh was stopped"));
}
