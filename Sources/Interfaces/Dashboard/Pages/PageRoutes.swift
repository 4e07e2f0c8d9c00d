package import ControlAPI
import Glibc
import JSON
import System

/// Responds to requests for pages, and to forms submitted without the script.
package struct PageRoutes: Sendable {
    let operations: any Operations
    /// Returns the current time.
    var now: @Sendable () -> String = {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Timestamp(seconds: Int64(time.tv_sec), nanoseconds: UInt32(time.tv_nsec)).description
    }

    package init(operations: any Operations) { self.operations = operations }

    /// The number of jobs on the overview and on the jobs page.
    private static let (few, many) = (30, 100)

    // MARK: Pages

    package func overview() -> APIResponse {
        answer { status throws(APIError) in
            var query = JobsQuery()
            query.limit = Self.few
            return OverviewPage(
                status: status, rules: try operations.rules(), history: try operations.history(),
                jobs: found(query), now: now()
            ).html
        }
    }

    package func jobs(_ request: APIRequest) -> APIResponse {
        func asked(_ name: String) -> String { request.text(name) ?? "" }
        let wanted = JobsPage.Query(
            state: asked("state"), rule: asked("rule"), path: asked("path"), since: asked("since"),
            before: asked("before"))
        var query = JobsQuery()
        query.limit = Self.many
        // A form submitted without the script contains its empty fields too.
        query.states = wanted.state.isEmpty ? [] : [wanted.state]
        query.rule = wanted.rule.isEmpty ? nil : wanted.rule
        query.path = wanted.path.isEmpty ? nil : request.query["path"]
        query.since = wanted.since.isEmpty ? nil : wanted.since
        query.before = wanted.before.isEmpty ? nil : wanted.before
        return answer { [query] status throws(APIError) in
            JobsPage(
                status: status, rules: try operations.rules(), jobs: found(query), query: wanted, now: now()
            ).html
        }
    }

    /// Returns the jobs, or the error: with a journal in memory, the rest of the page is still shown.
    private func found(_ query: JobsQuery) -> JSONValue {
        do throws(APIError) {
            return try operations.jobs(query)
        } catch {
            return ["error": ["message": .string(error.message), "help": .string(error.help)]]
        }
    }

    package func job(_ id: String) -> APIResponse {
        answer { status throws(APIError) in
            JobPage(status: status, job: try operations.job(id), now: now()).html
        }
    }

    package func rules() -> APIResponse {
        answer { status throws(APIError) in
            RulesPage(status: status, rules: try operations.rules(), now: now()).html
        }
    }

    private func answer(_ page: (JSONValue) throws(APIError) -> HTML) -> APIResponse {
        var status = JSONValue.null
        do throws(APIError) {
            status = try operations.status()
            return Self.response(200, try page(status))
        } catch {
            return Self.response(
                error.status,
                MessagePage(title: "Not found", message: error.message, help: error.help, status: status).html)
        }
    }

    private static func response(_ status: Int, _ html: HTML) -> APIResponse {
        APIResponse(
            status, type: "text/html; charset=utf-8", body: Array(html.text.utf8))
    }

    // MARK: Forms without the script

    /// Performs the action of a form, and redirects to a page.
    ///
    /// - Parameters:
    ///   - request: The request, whose body may contain the field `rule`.
    ///   - back: The page to redirect to.
    ///   - action: The action, called with the value of the field.
    /// - Returns: The redirect, or a page with the error.
    package func act(
        _ request: APIRequest, back: String, _ action: (String?) throws(APIError) -> Void
    ) -> APIResponse {
        do throws(APIError) {
            guard let form = APIRequest(way: request.way, method: "POST", target: Array("/?".utf8) + request.body),
                form.query.keys.allSatisfy({ $0 == "rule" }),
                request.body.split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false).count <= 1
            else { throw APIError(400, "invalid form", help: "use the buttons of the pages") }
            try action(form.text("rule"))
            return APIResponse(303, type: "text/plain; charset=utf-8", headers: [("Location", back)], body: [])
        } catch {
            let status = (try? operations.status()) ?? .null
            return Self.response(
                error.status,
                MessagePage(title: "Not done", message: error.message, help: error.help, status: status).html)
        }
    }
}

/// The static files of the pages, embedded in the program.
enum Asset: String, CaseIterable {
    case style = "dashboard.css"
    case script = "dashboard.js"
    case icon = "icon.svg"

    var type: String {
        switch self {
        case .style: "text/css; charset=utf-8"
        case .script: "text/javascript; charset=utf-8"
        case .icon: "image/svg+xml"
        }
    }

    var bytes: [UInt8] {
        switch self {
        case .style: PackageResources.dashboard_css
        case .script: PackageResources.dashboard_js
        case .icon: PackageResources.icon_svg
        }
    }

    var response: APIResponse { APIResponse(type: type, body: bytes) }
}
