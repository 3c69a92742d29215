use super::*;

/// Masks a command line whose arguments are separated by `|`.
fn masked(arguments: &str) -> String {
    shown(&(arguments.replace('|', "\0") + "\0")).unwrap()
}

#[test]
fn arguments_are_joined() {
    let table = [
        ("sleep\x0010\0", "sleep 10"),
        ("nginx: master process /usr/sbin/nginx\0\0\0\0", "nginx: master process /usr/sbin/nginx"),
        ("sh\0-c\0a\nb\0", "sh -c a b"),
        ("x\0\0y\0", "x  y"),
    ];
    for (cmdline, expected) in table {
        assert_eq!(shown(cmdline).as_deref(), Some(expected), "{cmdline:?}");
    }
    for none in ["", "\0", "\0\0\n"] {
        assert_eq!(shown(none), None);
    }
}

#[test]
fn secrets_are_hidden() {
    let table = [
        // Options and variables.
        ("mysql|--password=abc|-u|root", "mysql --password=*** -u root"),
        ("mysql|-pa b c|x", "mysql -p*** x"),
        ("sshpass|-pa b|ssh|x", "sshpass -p*** ssh x"),
        ("x|--api-key|abc|y", "x --api-key *** y"),
        ("x|--pass|abc|y", "x --pass *** y"),
        ("x|--pass=abc", "x --pass=***"),
        ("x|--pwd=abc", "x --pwd=***"),
        ("x|--password|a b|y", "x --password *** y"),
        ("redis-server|--requirepass|abc|--port|1", "redis-server --requirepass *** --port 1"),
        ("env|PGPASSWORD=abc|psql", "env PGPASSWORD=*** psql"),
        ("env|DB_PASS=a b|x", "env DB_PASS=*** x"),
        ("docker|run|--env=DB_PASSWORD=a b|x", "docker run --env=DB_PASSWORD=*** x"),
        ("java|-Ddb.password=abc|-jar|x", "java -Ddb.password=*** -jar x"),
        ("sh|-c|PWD=abc ./x", "sh -c PWD=***"),
        ("sh|-c|x --password abc --y; z", "sh -c x --password *** --y; z"),
        ("sh|-c|x --password 'a b c' z", "sh -c x --password *** z"),
        ("sh|-c|x --password='a b' z", "sh -c x --password=*** z"),
        ("x: worker --token=abc --port=1", "x: worker --token=*** --port=1"),
        // URLs.
        ("x|postgres://bob:abc@db:5432/y", "x postgres://bob:***@db:5432/y"),
        ("x|--url=redis://:abc@db/0", "x --url=redis://:***@db/0"),
        ("x|amqp://u:p@a,amqp://u:q@b/", "x amqp://u:***@a,amqp://u:***@b/"),
        ("x|http://u:a@b@h/p@q", "x http://u:***@h/p@q"),
        ("x|http://u:a/b#c@h/", "x http://u:***@h/"),
        ("git|https://ghp_0123456789abcdefghij@x.org/", "git https://***@x.org/"),
        ("x|https://h/?a=1&token=abc&b=2", "x https://h/?a=1&token=***&b=2"),
        // Headers.
        ("curl|-H|Authorization: Bearer abc|u", "curl -H Authorization: Bearer *** u"),
        ("curl|-H|Authorization:|Basic|YWJj|u", "curl -H Authorization: Basic *** u"),
        ("x|Bearer|abc|u", "x Bearer *** u"),
        ("x|bearer abc", "x bearer ***"),
        ("sh|-c|curl -H 'Authorization: Bearer abc' u", "sh -c curl -H 'Authorization: Bearer *** u"),
        ("curl|-H|Authorization:Bearer abc", "curl -H Authorization:Bearer ***"),
        ("curl|-H|Authorization: abc", "curl -H Authorization: ***"),
        ("curl|-H|X-Api-Key: -abc|u", "curl -H X-Api-Key: *** u"),
        ("curl|-H|X-Auth-Token:abc|u", "curl -H X-Auth-Token:*** u"),
        // Within an argument.
        ("x|Server=a;Password=abc;Database=b", "x Server=a;Password=***;Database=b"),
        ("x|Server=a;Password=a b;c;User ID=b", "x Server=a;Password=***;User ID=b"),
        ("x|Password=abc;Server=a", "x Password=***"),
        ("x|UID=sa;PWD=abc;", "x UID=sa;PWD=***;"),
        ("psql|host=a password=abc dbname=b", "psql host=a password=*** dbname=b"),
        ("psql|host=a password='a b' dbname=b", "psql host=a password=*** dbname=b"),
        ("mount|-o|user=a,passwd=a,b,vers=3", "mount -o user=a,passwd=***,vers=3"),
        ("curl|-d|{\"password\":\"a b\",\"x\":1}", "curl -d {\"password\":***"),
        ("curl|-d|{\"password\":\"ab\",\"x\":1}", "curl -d {\"password\":***,\"x\":1}"),
        ("openssl|-passin|pass:abc", "openssl -passin pass:***"),
        ("x|user:bob,secret:abc", "x user:bob,secret:***"),
        // Options of certain programs.
        ("curl|-u|bob:abc|u", "curl -u bob:*** u"),
        ("curl|-ubob:abc|u", "curl -ubob:*** u"),
        ("curl|-sSu|bob:a b|u", "curl -sSu bob:*** u"),
        ("curl|--user|bob:abc:d|u", "curl --user bob:*** u"),
        ("wget|--user=bob:abc|u", "wget --user=bob:*** u"),
        ("mysql|-uroot|-pabc|db", "mysql -uroot -p*** db"),
        ("/usr/bin/mysqldump|-pabc", "/usr/bin/mysqldump -p***"),
        ("sh|-c|mariadb-admin -pabc ping", "sh -c mariadb-admin -p*** ping"),
        ("sudo|mysqladmin|-pabc|ping", "sudo mysqladmin -p*** ping"),
        ("sshpass|-p|abc|ssh|h", "sshpass -p *** ssh h"),
        ("redis-cli|-a|abc|ping", "redis-cli -a *** ping"),
    ];
    let wrong = table.iter().map(|(line, wanted)| (masked(line), *wanted)).filter(|(a, b)| a != b);
    assert_eq!(wrong.collect::<Vec<_>>(), []);
}

#[test]
fn what_only_looks_like_a_secret_stays() {
    let table = [
        "mysqld|--datadir=/srv/x",
        "x|--token|--verbose",
        "mkdir|secret|tokens",
        "x|--passive|y",
        "x|--bypass|y",
        "find|/|-path|/x|-name|y",
        "x|--pid=1|--pid|7",
        "x|123e4567-e89b-12d3-a456-426614174000",
        "x|--id=123e4567-e89b-12d3-a456-426614174000",
        "x|sha256:e3b0c44298fc1c149afbf4c8996fb924",
        "git|show|da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "chown|-R|user:group|/x",
        "docker|run|-p|80:80|-u|0:0|nginx:1.27",
        "docker|run|--name|mysql|-p80:80|x",
        "nc|example.org:443",
        "x|--listen=127.0.0.1:8080|[::1]:80",
        "x|api-token.example.org:443",
        "x|http://[::1]:80/a@b|http://h:80/@x|ssh://git@h/x",
        "ssh|-p|22|me@host",
        "mysql|-u|root|-p|db",
        "mkdir|-p|/x",
        "cp|-pr|a|b",
        "x|--password-file=/x|--token-file|/y",
        "docker|login|--password-stdin|registry",
        "psql|--no-password|db",
        "x|--max-tokens|4096|--tokenizer|y",
        "env|PWD=/srv|x",
        "sshd: bob@pts/0",
        "rsync|-a|h:/x|/y",
        "ps|-u|root",
        "sudo|-u|postgres|psql",
        "x|std::token::Kind|a=b;c=d",
    ];
    let wrong = table.iter().map(|line| (masked(line), line.replace('|', " "))).filter(|(a, b)| a != b);
    assert_eq!(wrong.collect::<Vec<_>>(), []);
}

#[test]
fn whatever_is_there_it_is_no_panic() {
    let parts = [
        "'", "\"", "=", ":", "://", "@", ";", "-p", "-u", "ä", " ", "\0", "password", "Bearer", "mysql", "\\",
    ];
    for a in parts {
        for b in parts {
            for c in parts {
                for d in parts {
                    shown(&[a, b, c, d, a].concat());
                }
            }
        }
    }
}

#[test]
fn a_long_one_is_cut_between_characters() {
    let shown = shown(&"ä".repeat(1000)).unwrap();
    assert_eq!(shown.chars().count(), LONGEST + 1);
    assert!(shown.ends_with("ä…"));
}
