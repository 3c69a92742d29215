#!/usr/bin/python3
"""A package manager for a test: a repository, a database and a log below /var/lib/toypkg, settings in /etc/toypkg."""
import json, os, sys, time

ROOT, ETC = "/var/lib/toypkg", "/etc/toypkg"
REPOSITORY = {
    "lab-toy": {"summary": "greets", "versions": ["2.0", "1.0"], "needs": ["lab-toy-base"]},
    "lab-toy-base": {"summary": "what others need", "versions": ["1.0"], "needs": []},
    "lab-toy-lost": {"summary": "needs what there isn't", "versions": ["1.0"], "needs": ["lab-toy-nowhere"]},
}


def load():
    try:
        with open(f"{ROOT}/installed.json") as file:
            return json.load(file)
    except FileNotFoundError:
        return {}


def with_needs(names):
    """The names and the names that they need, in the order of installation."""
    found = []
    for name in names:
        if name not in REPOSITORY:
            sys.exit(f"toypkg: nothing has {name}, which something needs")
        found += [other for other in with_needs(REPOSITORY[name]["needs"]) + [name] if other not in found]
    return found


def with_dependants(names, here):
    """The names and the names that need them, in the order of removal."""
    needing = [name for name in here if name not in names and set(REPOSITORY[name]["needs"]) & set(names)]
    return (with_dependants(names + needing, here) if needing else names[::-1])


def moves(verb, operands, packages):
    """Lines `VERB NAME FROM TO`, where `-` stands for no version."""
    here = {name: version for name, (version, state) in packages.items() if state == "installed"}
    lines = []
    if verb == "install":
        lines = [("install", name, "-", REPOSITORY[name]["versions"][0]) for name in with_needs(operands) if name not in here]
    elif verb in ("remove", "purge"):
        there = packages if verb == "purge" else here
        lines = [(verb, name, packages[name][0], "-") for name in with_dependants([name for name in operands if name in there], here)]
    elif verb == "update":
        newest = {name: REPOSITORY[name]["versions"][0] for name in (operands or here) if name in here}
        lines = [("upgrade", name, here[name], to) for name, to in newest.items() if here[name] != to]
    elif verb == "set":
        name, version = operands[0].split("=")
        lines = [("upgrade" if version > here[name] else "downgrade", name, here[name], version)]
    return lines


def do(lines, packages):
    os.makedirs(ETC, exist_ok=True)
    for verb, name, old, new in lines:
        settings = f"{ETC}/{name}.conf"
        if verb == "purge":
            packages.pop(name)
            os.path.exists(settings) and os.remove(settings)
        elif verb == "remove":
            packages[name] = (old, "removed")
        else:
            packages[name] = (new, "installed")
            open(settings, "a").close()
        with open(f"{ROOT}/log", "a") as log:
            print(time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), verb, name, old, new, file=log)
    with open(f"{ROOT}/installed.json", "w") as file:
        json.dump(packages, file)


def main(verb, *rest):
    os.makedirs(ROOT, exist_ok=True) if os.geteuid() == 0 else None
    operands = [word for word in rest if word not in ("--", "--try")]
    packages = load()
    if verb == "list":
        print(*(f"{name} {version} {state}" for name, (version, state) in packages.items()), sep="\n")
    elif verb == "search":
        said = {name: f"{name} {known['summary']}" for name, known in REPOSITORY.items()}
        print(*(text for text in said.values() if all(word in text for word in operands)), sep="\n")
    elif verb == "show":
        print(REPOSITORY[operands[0]]["summary"])
    elif verb == "versions":
        print(*REPOSITORY.get(operands[0], {"versions": []})["versions"], sep="\n", end="\n" if operands[0] in REPOSITORY else "")
    elif verb == "names":
        print(*REPOSITORY, sep="\n")
    elif verb == "log":
        print(open(f"{ROOT}/log").read() if os.path.exists(f"{ROOT}/log") else "", end="")
    elif verb == "refresh":
        open(f"{ROOT}/refreshed", "w").close()
    else:
        lines = moves(verb, operands, packages)
        if "--try" in rest:
            print(*(" ".join(line) for line in lines), sep="\n")
        else:
            do(lines, packages)


main(*sys.argv[1:])
