//! The network of this machine, for a change to the machine itself. There is no connection that the host could try.

use std::collections::BTreeSet;

use serde_json::Value;

use super::units::own;
use host_base::Privilege;
use host_base::problem::{Category, Problem};
use host_target::Target;

/// The interfaces that are up with their addresses, and the default routes.
#[derive(Debug, PartialEq)]
pub(super) struct Network {
    addresses: BTreeSet<(String, String)>,
    routes: BTreeSet<(String, String)>,
}

impl Network {
    pub async fn of(target: &Target) -> Result<Self, Problem> {
        let commands =
            [["-json", "address", "show", "up"].as_slice(), &["-json", "route", "show", "default"]]
                .map(|args| own("ip", args, None, Privilege::Caller));
        let mut outputs = target.run_all(&commands).await.into_iter();
        let mut next = || -> Result<Value, Problem> {
            let unknown = |why: String| {
                Problem::new(
                    "GUARD_UNAVAILABLE",
                    Category::State,
                    format!("the way to this machine can't be looked at: {why}"),
                )
            };
            let output = outputs.next().ok_or_else(|| unknown("no answer".into()))??;
            if output.exit_code != 0 {
                return Err(unknown(String::from_utf8_lossy(&output.stderr).into_owned()));
            }
            if output.stdout.trim_ascii().is_empty() {
                return Ok(Value::Array(Vec::new()));
            }
            serde_json::from_slice(&output.stdout).map_err(|error| unknown(error.to_string()))
        };
        Ok(Self::read(&next()?, &next()?))
    }

    fn read(addresses: &Value, routes: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let array = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let mut all = BTreeSet::new();
        for interface in array(addresses) {
            let flags = array(&interface["flags"]);
            let has = |flag: &str| flags.iter().any(|known| known == flag);
            if has("LOOPBACK") || !has("UP") || !has("LOWER_UP") {
                continue;
            }
            for address in
                array(&interface["addr_info"]).iter().filter(|address| address["scope"] == "global")
            {
                all.insert((text(&interface["ifname"]), text(&address["local"])));
            }
        }
        let routes =
            array(routes).iter().map(|route| (text(&route["gateway"]), text(&route["dev"]))).collect();
        Self { addresses: all, routes }
    }

    pub async fn still_holds(&self, target: &Target) -> bool {
        match Self::of(target).await {
            Ok(now) => self.addresses.is_subset(&now.addresses) && self.routes.is_subset(&now.routes),
            Err(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_way_holds_as_long_as_every_address_and_default_route_is_there() {
        // The format is that of iproute2 6.1.
        let addresses = |flags: Value, local: &str| {
            json!([
                {"ifname": "lo", "flags": ["LOOPBACK", "UP", "LOWER_UP"],
                 "addr_info": [{"family": "inet", "local": "127.0.0.1", "scope": "host"}]},
                {"ifname": "eth0", "flags": flags, "operstate": "UP",
                 "addr_info": [{"family": "inet", "local": local, "scope": "global"},
                               {"family": "inet6", "local": "fe80::1", "scope": "link"}]},
            ])
        };
        let routes = json!([{"dst": "default", "gateway": "192.0.2.1", "dev": "eth0", "flags": []}]);
        let up = json!(["BROADCAST", "MULTICAST", "UP", "LOWER_UP"]);
        let before = Network::read(&addresses(up.clone(), "192.0.2.7"), &routes);
        assert_eq!(before.addresses, BTreeSet::from([("eth0".to_owned(), "192.0.2.7".to_owned())]));
        for (now, holds) in [
            (Network::read(&addresses(up.clone(), "192.0.2.7"), &routes), true),
            (Network::read(&addresses(up.clone(), "192.0.2.8"), &routes), false),
            (Network::read(&addresses(json!(["BROADCAST"]), "192.0.2.7"), &routes), false),
            (Network::read(&addresses(json!(["UP"]), "192.0.2.7"), &routes), false),
            (Network::read(&addresses(up.clone(), "192.0.2.7"), &json!([])), false),
        ] {
            let kept = before.addresses.is_subset(&now.addresses) && before.routes.is_subset(&now.routes);
            assert_eq!(kept, holds, "{now:?}");
        }
    }
}
