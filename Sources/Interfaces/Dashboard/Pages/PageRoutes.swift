package import ControlAPI
import JSON
import System

/// Responds to requests for pages, and to forms submitted without the script.
struct PageRoutes: Sendable {
    let operations: any Operations
    private var now: String { DiskProbe.now().description }

    /// The number of jobs on the overview and on the jobs page.
    private static let (few, many) = (30, 100)

    // MARK: Pages

    func overview() -> APIResponse {
        answer { status throws(APIError) in
            OverviewPage(
                status: status, rules: try operations.rules(), history: try operations.history(),
                jobs: found(JobsQuery(states: [], limit: Self.few)), now: now
            ).html
        }
    }

    func jobs(_ request: APIRequest) -> APIResponse {
        // A form submitted without the script contains its empty fields too.
        func text(_ name: String) -> String? { request.text(name).flatMap { $0.isEmpty ? nil : $0 } }
        let query = JobsQuery(
            states: [text("state")].compactMap(\.self), rule: text("rule"),
            path: request.query["path"].flatMap { $0.isEmpty ? nil : $0 }, since: text("since"), limit: Self.many,
            before: text("before"))
        return answer { status throws(APIError) in
            JobsPage(status: status, rules: try operations.rules(), jobs: found(query), query: query, now: now).html
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

    func job(_ id: String) -> APIResponse {
        answer { status throws(APIError) in JobPage(status: status, job: try operations.job(id), now: now).html }
    }

    func rules() -> APIResponse {
        answer { status throws(APIError) in RulesPage(status: status, rules: try operations.rules(), now: now).html }
    }

    private func answer(_ page: (JSONValue) throws(APIError) -> HTML) -> APIResponse {
        var status = JSONValue.null
        do throws(APIError) {
            status = try operations.status()
            return Self.response(200, try page(status))
        } catch {
            return Self.message("Not found", error, status)
        }
    }

    private static func message(_ title: String, _ error: APIError, _ status: JSONValue) -> APIResponse {
        response(error.status, Frame(title: title, status: status).message(error.message, help: error.help))
    }

    private static func response(_ status: Int, _ html: HTML) -> APIResponse {
        APIResponse(status, type: "text/html; charset=utf-8", body: Array(html.text.utf8))
    }

    // MARK: Forms without the script

    /// Performs the action of a form, and redirects to a page.
    ///
    /// - Parameters:
    ///   - request: The request, whose body may contain the field `rule`.
    ///   - back: The page to redirect to.
    ///   - action: The action, called with the value of the field.
    /// - Returns: The redirect, or a page with the error.
    func act(_ request: APIRequest, back: String, _ action: (String?) throws(APIError) -> Void) -> APIResponse {
        do throws(APIError) {
            guard
                let form = APIRequest(
                    transport: request.transport, method: "POST", target: Array("/?".utf8) + request.body),
                form.query.keys.allSatisfy({ $0 == "rule" }),
                request.body.split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false).count <= 1
            else { throw APIError(400, "invalid form", help: "use the buttons of the pages") }
            try action(form.text("rule"))
            return APIResponse(303, type: "text/plain; charset=utf-8", headers: [("Location", back)], body: [])
        } catch {
            return Self.message("Not done", error, (try? operations.status()) ?? .null)
        }
    }
}

extension Routes {
    /// Adds the routes of the dashboard, by TCP only.
    ///
    /// - Parameter operations: The operations of the instance.
    package mutating func addPages(_ operations: any Operations) {
        let pages = PageRoutes(operations: operations)
        addPage("GET", "/") { _, _ throws(APIError) in pages.overview() }
        addPage("GET", "/jobs") { request, _ throws(APIError) in pages.jobs(request) }
        addPage("GET", "/jobs/*") { _, names throws(APIError) in pages.job(names[0]) }
        addPage("GET", "/rules") { _, _ throws(APIError) in pages.rules() }
        // The static files of the pages are embedded in the program.
        let assets = [
            ("dashboard.css", "text/css; charset=utf-8", PackageResources.dashboard_css),
            ("dashboard.js", "text/javascript; charset=utf-8", PackageResources.dashboard_js),
            ("icon.svg", "image/svg+xml", PackageResources.icon_svg),
        ]
        for (name, type, bytes) in assets {
            let response = APIResponse(type: type, body: bytes)
            addPage("GET", "/assets/\(name)") { _, _ throws(APIError) in response }
        }

        // The forms of pages without the script; the script uses the API.
        let forms: [(path: String, back: String, action: @Sendable (String, String?) throws(APIError) -> Void)] = [
            ("/jobs/*/retry", "/jobs/*", { job, _ throws(APIError) in _ = try operations.retry(job) }),
            ("/jobs/*/discard", "/jobs?state=failed", { job, _ throws(APIError) in _ = try operations.discard(job) }),
            ("/reload", "/rules", { _, _ throws(APIError) in try operations.reload() }),
            ("/rescan", "/", { _, _ throws(APIError) in try operations.rescan() }),
            ("/pause", "/rules", { _, rule throws(APIError) in _ = try operations.pause(rule) }),
            ("/resume", "/rules", { _, rule throws(APIError) in _ = try operations.resume(rule) }),
        ]
        for form in forms {
            addPage("POST", form.path) { request, names in
                let job = names.first ?? ""
                let back = form.back.replacing("*", with: HTML.urlPart(job))
                return pages.act(request, back: back) { rule throws(APIError) in try form.action(job, rule) }
            }
        }
    }
}
