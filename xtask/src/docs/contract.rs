//! Writes the reference of the contract from the comments of `wit/`.

use super::wrap::{prose, wrap};
use anyhow::{Context, Result};
use std::path::Path;
use wit_parser::{
    Docs, Function, Handle, Interface, InterfaceId, Resolve, Type, TypeDef, TypeDefKind, WorldItem,
};

/// The folder of the contract.
const WIT: &str = "wit";
/// The world of the modules that anybody writes.
const WORLD: &str = "tool-module";

const HEAD: &str = "\
# Reference of the contract

These are the interfaces of the world `tool-module`, version VERSION, with the comments of the files in `wit/`, from which
`cargo xtask docs` writes this page. An author with an [sdk](guide.md) seldom needs it: the sdks have the same names.
";

/// The page.
pub(super) fn page(root: &Path) -> Result<String> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(root.join(WIT)).with_context(|| format!("cannot read {WIT}"))?;
    let version = resolve.packages[package].name.version.as_ref().context("the contract has a version")?;
    let world = &resolve.worlds[resolve.select_world(&[package], Some(WORLD))?];
    let mut page = HEAD.replace("VERSION", &version.to_string());
    for (items, how) in [
        (&world.exports, "A module exports this interface."),
        (&world.imports, "A module may import this interface."),
    ] {
        let mut interfaces: Vec<&Interface> =
            items.values().filter_map(interface_of).map(|id| &resolve.interfaces[id]).collect();
        interfaces.sort_by_key(|interface| &interface.name);
        interfaces.iter().for_each(|interface| add(&resolve, interface, how, &mut page));
    }
    Ok(page)
}

fn interface_of(item: &WorldItem) -> Option<InterfaceId> {
    match item {
        WorldItem::Interface { id, .. } => Some(*id),
        WorldItem::Function(_) | WorldItem::Type { .. } => None,
    }
}

fn add(resolve: &Resolve, interface: &Interface, how: &str, page: &mut String) {
    page.push_str(&format!("\n## {}\n\n{how}", interface.name.as_deref().unwrap_or_default()));
    page.push('\n');
    add_docs(&interface.docs, page);
    let mut functions: Vec<&Function> = interface.functions.values().collect();
    functions.sort_by_key(|function| title(resolve, function));
    for function in functions {
        let signature = format!("{}: {}", function.item_name(), signature(resolve, function));
        page.push_str(&format!("\n### `{}`\n\n```wit\n{signature}\n```\n", title(resolve, function)));
        add_docs(&function.docs, page);
    }
    let mut types: Vec<(&String, &TypeDef)> =
        interface.types.iter().map(|(name, id)| (name, &resolve.types[*id])).collect();
    types.sort_by_key(|(name, _)| *name);
    for (name, defined) in types {
        add_type(resolve, name, defined, page);
    }
}

/// The name of a function, behind that of its resource.
fn title(resolve: &Resolve, function: &Function) -> String {
    let resource = function.kind.resource().and_then(|id| resolve.types[id].name.as_deref());
    let name = function.item_name();
    resource.map_or_else(|| name.to_owned(), |resource| format!("{resource}.{name}"))
}

fn signature(resolve: &Resolve, function: &Function) -> String {
    // The first parameter of a method is the resource itself.
    let params = function.params.iter().filter(|param| param.name != "self");
    let params: Vec<String> =
        params.map(|param| format!("{}: {}", param.name, type_name(resolve, &param.ty))).collect();
    let result =
        function.result.as_ref().map(|ty| format!(" -> {}", type_name(resolve, ty))).unwrap_or_default();
    format!("func({}){result}", params.join(", "))
}

fn add_type(resolve: &Resolve, name: &str, defined: &TypeDef, page: &mut String) {
    let members: Vec<(String, &Docs)> = match &defined.kind {
        TypeDefKind::Record(record) => {
            let field =
                |field: &wit_parser::Field| format!("{}: {}", field.name, type_name(resolve, &field.ty));
            record.fields.iter().map(|of| (field(of), &of.docs)).collect()
        }
        TypeDefKind::Variant(variant) => {
            let case = |case: &wit_parser::Case| match &case.ty {
                Some(ty) => format!("{}({})", case.name, type_name(resolve, ty)),
                None => case.name.clone(),
            };
            variant.cases.iter().map(|of| (case(of), &of.docs)).collect()
        }
        TypeDefKind::Enum(of) => of.cases.iter().map(|case| (case.name.clone(), &case.docs)).collect(),
        TypeDefKind::Flags(of) => of.flags.iter().map(|flag| (flag.name.clone(), &flag.docs)).collect(),
        TypeDefKind::Resource => Vec::new(),
        // Types of another interface are described there.
        _ => return,
    };
    page.push_str(&format!("\n### `{name}`\n\n`{}`", defined.kind.as_str()));
    page.push('\n');
    add_docs(&defined.docs, page);
    if !members.is_empty() {
        page.push('\n');
    }
    for (member, docs) in members {
        let said = docs.contents.as_deref().unwrap_or_default();
        page.push_str(&wrap(&format!("`{member}`: {}", prose(said)), "- ", "  "));
    }
}

/// Adds the paragraphs of a comment.
fn add_docs(docs: &Docs, page: &mut String) {
    for paragraph in docs.contents.iter().flat_map(|text| text.split("\n\n")) {
        page.push('\n');
        page.push_str(&wrap(&prose(paragraph), "", ""));
    }
}

/// The type as the contract writes it.
fn type_name(resolve: &Resolve, ty: &Type) -> String {
    let of = |ty: &Type| type_name(resolve, ty);
    let id = match ty {
        Type::Bool => return "bool".to_owned(),
        Type::U8 => return "u8".to_owned(),
        Type::U16 => return "u16".to_owned(),
        Type::U32 => return "u32".to_owned(),
        Type::U64 => return "u64".to_owned(),
        Type::S8 => return "s8".to_owned(),
        Type::S16 => return "s16".to_owned(),
        Type::S32 => return "s32".to_owned(),
        Type::S64 => return "s64".to_owned(),
        Type::F32 => return "f32".to_owned(),
        Type::F64 => return "f64".to_owned(),
        Type::Char => return "char".to_owned(),
        Type::String => return "string".to_owned(),
        Type::ErrorContext => return "error-context".to_owned(),
        Type::Id(id) => *id,
    };
    let defined = &resolve.types[id];
    if let Some(name) = &defined.name {
        return name.clone();
    }
    match &defined.kind {
        TypeDefKind::Option(ty) => format!("option<{}>", of(ty)),
        TypeDefKind::List(ty) => format!("list<{}>", of(ty)),
        TypeDefKind::Tuple(tuple) => {
            format!("tuple<{}>", tuple.types.iter().map(of).collect::<Vec<_>>().join(", "))
        }
        TypeDefKind::Result(result) => match (&result.ok, &result.err) {
            (Some(ok), Some(err)) => format!("result<{}, {}>", of(ok), of(err)),
            (Some(ok), None) => format!("result<{}>", of(ok)),
            (None, Some(err)) => format!("result<_, {}>", of(err)),
            (None, None) => "result".to_owned(),
        },
        TypeDefKind::Handle(Handle::Own(id)) => of(&Type::Id(*id)),
        TypeDefKind::Handle(Handle::Borrow(id)) => format!("borrow<{}>", of(&Type::Id(*id))),
        other => other.as_str().to_owned(),
    }
}
