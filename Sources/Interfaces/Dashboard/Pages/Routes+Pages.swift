package import ControlAPI

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
        for asset in Asset.allCases {
            let response = asset.response
            addPage("GET", "/assets/\(asset.rawValue)") { _, _ throws(APIError) in response }
        }

        // The forms of pages without the script; the script uses the API.
        addPage("POST", "/jobs/*/retry") { request, names throws(APIError) in
            pages.act(request, back: "/jobs/\(HTML.urlPart(names[0]))") { _ throws(APIError) in
                _ = try operations.retry(names[0])
            }
        }
        addPage("POST", "/jobs/*/discard") { request, names throws(APIError) in
            pages.act(request, back: "/jobs?state=failed") { _ throws(APIError) in
                _ = try operations.discard(names[0])
            }
        }
        addPage("POST", "/reload") { request, _ throws(APIError) in
            pages.act(request, back: "/rules") { _ throws(APIError) in try operations.reload() }
        }
        addPage("POST", "/rescan") { request, _ throws(APIError) in
            pages.act(request, back: "/") { _ throws(APIError) in try operations.rescan() }
        }
        addPage("POST", "/pause") { request, _ throws(APIError) in
            pages.act(request, back: "/rules") { rule throws(APIError) in _ = try operations.pause(rule) }
        }
        addPage("POST", "/resume") { request, _ throws(APIError) in
            pages.act(request, back: "/rules") { rule throws(APIError) in _ = try operations.resume(rule) }
        }
    }
}
