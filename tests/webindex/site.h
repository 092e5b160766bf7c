// SPDX-License-Identifier: Apache-2.0

// Small random web sites, as files of a folder, and random changes of them.
//
//     Site site(folder, seed);
//     site.AddPages(20);
//     for (const std::string& path : site.Change()) crawl.Refresh(path);
//
// The same seed and the same calls give the same files. Words, names and texts come from small sets. So pages are
// duplicates of each other, names are reused, links lead to pages that go and come back, and moved pages form chains
// and cycles.
//
// A change is atomic: files are written elsewhere and moved to their place. Each has a time of modification of its own.

#ifndef PERCOLATOR_TESTS_WEBINDEX_SITE_H_
#define PERCOLATOR_TESTS_WEBINDEX_SITE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace webindex {

inline constexpr std::string_view kSiteBase = "https://site.example/";

class Site {
 public:
  // Creates the folder. Files are written in a folder beside it, FOLDER.new.
  Site(std::string folder, uint64_t seed);

  const std::string& folder() const { return folder_; }

  void AddPages(size_t count);

  // Makes a change. Returns the paths, of files or folders, that may be different now.
  std::vector<std::string> Change();

  // The changes made, a line each, to read after a test has failed.
  const std::vector<std::string>& log() const { return log_; }

 private:
  struct Page {
    std::string title;
    std::string description;
    std::string body;
    std::vector<std::pair<std::string, std::string>> links;  // href, anchor
    std::vector<std::string> resources;
    std::string moved_to;  // href
    bool by_refresh = false;
  };

  uint64_t Below(uint64_t bound) { return random_() % bound; }
  bool OneIn(uint64_t bound) { return Below(bound) == 0; }
  std::string Words(uint64_t most);
  std::string AnyPath();  // of a page, existing or not
  std::string ExistingPage();
  std::string AnyFile();  // a resource, existing or not
  std::string HrefTo(const std::string& path);

  Page NewPage();
  void SetLinks(Page* page);
  void SetResources(Page* page);
  void SetMoved(Page* page);
  static std::string HtmlOf(const Page& page);

  std::vector<std::string> AddPage();
  std::vector<std::string> EditPage();
  std::vector<std::string> DeletePage();
  std::vector<std::string> RenamePage();
  std::vector<std::string> DuplicatePage();
  std::vector<std::string> TouchPage();
  std::vector<std::string> RenameFolder();
  std::vector<std::string> ChangeFile();
  std::vector<std::string> ChainPages();
  std::vector<std::string> UndoChange();

  void WritePage(const std::string& path);
  void WriteFile(const std::string& path, const std::string& bytes);
  void Remove(const std::string& path);
  void Log(const std::string& what) { log_.push_back(what); }

  const std::string folder_;
  const std::string scratch_;
  std::mt19937_64 random_;
  int64_t clock_nanos_ = 1'700'000'000'000'000'000;
  std::map<std::string, Page> pages_;
  std::map<std::string, std::string> files_;
  std::optional<std::pair<std::string, Page>> before_;  // a page before its last edit or deletion
  std::vector<std::string> log_;
};

}  // namespace webindex

#endif  // PERCOLATOR_TESTS_WEBINDEX_SITE_H_
