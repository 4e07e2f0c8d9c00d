import Dashboard

extension Page {
    /// The pages of the dashboard; `/` says where the API is while there are none.
    static var dashboard: [Page] {
        let text = "This is Alight. Its API is below /v1.\n"
        return [Page(path: "/", type: "text/plain; charset=utf-8", body: Array(text.utf8))]
    }
}
