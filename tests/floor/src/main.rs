//! The floor of the benchmarks: an MCP server of the same library that answers the same `tools/list` from a file and
//! does nothing else than read files, natively.
#![forbid(unsafe_code)]

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::{ErrorData, ServerHandler, ServiceExt};

struct Floor(Vec<Tool>);

impl ServerHandler for Floor {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.0.clone()))
    }

    async fn call_tool(
        &self,
        _: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let text: String = ["/proc/uptime", "/proc/stat", "/proc/loadavg"]
            .into_iter()
            .map(|path| std::fs::read_to_string(path).unwrap_or_default())
            .collect();
        Ok(CallToolResult::success(vec![ContentBlock::text(text.len().to_string())]).into())
    }
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let served = runtime.map(|runtime| {
        runtime.block_on(async {
            let path = std::env::args().nth(1).unwrap_or_default();
            let text = std::fs::read_to_string(path).unwrap_or_default();
            let tools = serde_json::from_str(&text).unwrap_or_default();
            match Floor(tools).serve(rmcp::transport::io::stdio_pipes()).await {
                Ok(service) => drop(service.waiting().await),
                Err(error) => eprintln!("{error}"),
            }
        });
    });
    if let Err(error) = served {
        eprintln!("{error}");
    }
}
