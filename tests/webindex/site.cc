// SPDX-License-Identifier: Apache-2.0

#include "tests/webindex/site.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace webindex {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 24> kWords = {
    "river", "stone", "lamp", "Stone", "garden", "wolf", "cloud", "été",    "Straße", "über", "東京", "привет",
    "42",    "1.5",   "the",  "a",     "of",     "lamp", "river", "bridge", "moss",   "kite", "yarn", "don't"};
constexpr std::array<std::string_view, 5> kTitles = {"Home", "River lamp", "Stone", "", "A <b> & \"c\""};
constexpr std::array<std::string_view, 6> kTexts = {
    "river stone lamp", "the wolf of the garden", "", "moss 42 kite", "lamp", "東京 bridge été & <cloud>"};
constexpr std::array<std::string_view, 5> kFolders = {"", "a/", "b/", "a/c/", "d/"};
constexpr std::array<std::string_view, 8> kSiteFiles = {"s.css",   "a/s.css", "i.png",   "a/i.png",
                                                        "one.inc", "two.inc", "b/x.inc", "gone.js"};
constexpr std::string_view kHotPage = "hot.html";
constexpr uint64_t kNames = 10;

[[noreturn]] void Die(const std::string& what) {
  std::perror(what.c_str());
  std::abort();
}

void Require(const std::error_code& error, const std::string& what) {
  if (!error) return;
  std::fprintf(stderr, "%s: %s\n", what.c_str(), error.message().c_str());
  std::abort();
}

std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '<':
        escaped += "&lt;";
        break;
      case '&':
        escaped += "&amp;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string_view ExtensionOf(std::string_view path) { return path.substr(path.rfind('.') + 1); }

// The element that uses a file of this name.
std::string ElementFor(const std::string& href) {
  if (ExtensionOf(href) == "css") return "<link rel=\"stylesheet\" href=\"" + href + "\">\n";
  if (ExtensionOf(href) == "js") return "<script src=\"" + href + "\"></script>\n";
  if (ExtensionOf(href) == "png") return "<img src=\"" + href + "\">\n";
  return "<!--#include virtual=\"" + href + "\" -->\n";
}

}  // namespace

Site::Site(std::string folder, uint64_t seed) : folder_(std::move(folder)), scratch_(folder_ + ".new"), random_(seed) {
  std::error_code error;
  fs::create_directories(folder_, error);
  Require(error, folder_);
  fs::create_directories(scratch_, error);
  Require(error, scratch_);
}

void Site::AddPages(size_t count) {
  for (const size_t wanted = pages_.size() + count; pages_.size() < wanted;) AddPage();
}

std::vector<std::string> Site::Change() {
  if (pages_.size() < 2 || OneIn(6)) return AddPage();
  if (before_.has_value() && OneIn(3)) return UndoChange();
  switch (Below(14)) {
    case 0:
      return DeletePage();
    case 1:
      return RenamePage();
    case 2:
    case 3:
      return DuplicatePage();
    case 4:
      return TouchPage();
    case 5:
      return OneIn(2) ? RenameFolder() : DeletePage();
    case 6:
    case 7:
      return ChangeFile();
    case 8:
      return ChainPages();
    default:
      return EditPage();
  }
}

// --- The content of pages

std::string Site::Words(uint64_t most) {
  std::string words;
  for (uint64_t i = Below(most + 1); i > 0; --i) {
    if (!words.empty()) words += ' ';
    words += kWords[Below(kWords.size())];
  }
  return words;
}

std::string Site::AnyPath() {
  if (OneIn(8)) return std::string(kHotPage);
  const std::string_view extension = OneIn(10) ? ".htm" : ".html";
  std::string path(kFolders[Below(kFolders.size())]);
  path += 'p';
  path += std::to_string(Below(kNames));
  path += extension;
  return path;
}

std::string Site::ExistingPage() {
  auto page = pages_.begin();
  std::advance(page, Below(pages_.size()));
  return page->first;
}

std::string Site::AnyFile() { return std::string(kSiteFiles[Below(kSiteFiles.size())]); }

std::string Site::HrefTo(const std::string& path) { return OneIn(3) ? std::string(kSiteBase) + path : "/" + path; }

void Site::SetLinks(Page* page) {
  page->links.clear();
  if (OneIn(2)) page->links.emplace_back(HrefTo(std::string(kHotPage)), Words(2));
  for (uint64_t i = Below(6); i > 0; --i) {
    page->links.emplace_back(HrefTo(OneIn(3) || pages_.empty() ? AnyPath() : ExistingPage()), Words(3));
  }
  if (OneIn(6)) page->links.emplace_back("p" + std::to_string(Below(kNames)) + ".html#part", Words(2));
  if (OneIn(8)) page->links.emplace_back("https://elsewhere.example/p1.html", Words(2));
  if (OneIn(8)) page->links.emplace_back("javascript:alert(1)", Words(1));
}

void Site::SetResources(Page* page) {
  page->resources.clear();
  for (uint64_t i = Below(4); i > 0; --i) page->resources.push_back(HrefTo(OneIn(12) ? AnyPath() : AnyFile()));
}

void Site::SetMoved(Page* page) {
  page->moved_to = OneIn(2) ? "" : HrefTo(OneIn(4) || pages_.empty() ? AnyPath() : ExistingPage());
  page->by_refresh = OneIn(2);
}

Site::Page Site::NewPage() {
  Page page;
  if (OneIn(12)) return page;
  page.title = kTitles[Below(kTitles.size())];
  page.description = OneIn(4) ? Words(4) : "";
  page.body = OneIn(2) ? std::string(kTexts[Below(kTexts.size())]) : Words(12);
  if (!OneIn(4)) SetLinks(&page);
  if (OneIn(3)) SetResources(&page);
  if (OneIn(4)) SetMoved(&page);
  return page;
}

std::string Site::HtmlOf(const Page& page) {
  std::string html;
  if (!page.title.empty()) html += "<title>" + Escaped(page.title) + "</title>\n";
  if (!page.description.empty()) {
    html += "<meta name=\"description\" content=\"" + Escaped(page.description) + "\">\n";
  }
  if (!page.moved_to.empty()) {
    html += page.by_refresh ? "<meta http-equiv=\"refresh\" content=\"0; url=" + page.moved_to + "\">\n"
                            : "<link rel=\"canonical\" href=\"" + page.moved_to + "\">\n";
  }
  if (!page.body.empty()) html += "<p>" + Escaped(page.body) + "</p>\n";
  for (const auto& [href, anchor] : page.links) html += "<a href=\"" + href + "\">" + Escaped(anchor) + "</a>\n";
  for (const std::string& resource : page.resources) html += ElementFor(resource);
  return html;
}

// --- Changes

std::vector<std::string> Site::AddPage() {
  const std::string path = pages_.count(std::string(kHotPage)) == 0 && OneIn(4) ? std::string(kHotPage) : AnyPath();
  pages_[path] = NewPage();
  WritePage(path);
  Log("add " + path);
  return {path};
}

std::vector<std::string> Site::EditPage() {
  const std::string path = ExistingPage();
  Page& page = pages_[path];
  before_ = {path, page};
  switch (Below(7)) {
    case 0:
      page.title = kTitles[Below(kTitles.size())];
      break;
    case 1:
      page.body = OneIn(2) ? std::string(kTexts[Below(kTexts.size())]) : Words(12);
      break;
    case 2:
    case 3:
      SetLinks(&page);
      break;
    case 4:
      SetResources(&page);
      break;
    case 5:
      SetMoved(&page);
      break;
    default:
      page.description = Words(4);
      if (!page.links.empty()) page.links[Below(page.links.size())].second = Words(3);
  }
  WritePage(path);
  Log("edit " + path);
  return {path};
}

std::vector<std::string> Site::DeletePage() {
  const std::string path = ExistingPage();
  before_ = {path, pages_[path]};
  pages_.erase(path);
  Remove(path);
  Log("delete " + path);
  return {path};
}

std::vector<std::string> Site::RenamePage() {
  const std::string from = ExistingPage();
  const std::string to = AnyPath();
  if (from == to) return {};
  pages_[to] = pages_[from];
  pages_.erase(from);
  std::error_code error;
  fs::create_directories(fs::path(folder_ + "/" + to).parent_path(), error);
  Require(error, to);
  fs::rename(folder_ + "/" + from, folder_ + "/" + to, error);
  Require(error, from);
  Log("rename " + from + " to " + to);
  return {from, to};
}

std::vector<std::string> Site::DuplicatePage() {
  const std::string from = ExistingPage();
  const std::string to = OneIn(2) ? ExistingPage() : AnyPath();
  if (from == to) return {};
  const Page copy = pages_[from];
  pages_[to] = copy;
  WritePage(to);
  Log("copy " + from + " to " + to);
  return {to};
}

std::vector<std::string> Site::TouchPage() {
  const std::string path = ExistingPage();
  WritePage(path);
  Log("touch " + path);
  return {path};
}

// Renames a folder to a name that no page is created with, or back.
std::vector<std::string> Site::RenameFolder() {
  std::string from(kFolders[1 + Below(kFolders.size() - 1)]);
  std::string to = "moved-" + from.substr(0, 1) + "/";
  if (!fs::exists(folder_ + "/" + from)) std::swap(from, to);
  if (!fs::exists(folder_ + "/" + from) || fs::exists(folder_ + "/" + to)) return {};
  if (!fs::exists(fs::path(folder_ + "/" + to.substr(0, to.size() - 1)).parent_path())) return {};
  std::error_code error;
  fs::rename(folder_ + "/" + from.substr(0, from.size() - 1), folder_ + "/" + to.substr(0, to.size() - 1), error);
  Require(error, from);
  const auto move = [&](auto* entries) {
    auto old = std::exchange(*entries, {});
    for (auto& [path, entry] : old) {
      const bool inside = path.starts_with(from);
      (*entries)[inside ? to + path.substr(from.size()) : path] = std::move(entry);
    }
  };
  move(&pages_);
  move(&files_);
  Log("rename folder " + from + " to " + to);
  return {from.substr(0, from.size() - 1), to.substr(0, to.size() - 1)};
}

std::vector<std::string> Site::ChangeFile() {
  const std::string path = AnyFile();
  if (files_.count(path) > 0 && OneIn(3)) {
    files_.erase(path);
    Remove(path);
    Log("delete " + path);
    return {path};
  }
  std::string& bytes = files_[path];
  bytes =
      ExtensionOf(path) == "png" ? std::string("\x89PNG\r\n\x1a\n\0\xff\xfe", 11) + std::to_string(Below(5)) : Words(8);
  WriteFile(path, bytes);
  Log("write " + path);
  return {path};
}

// A few pages declare that they have moved, each to the next; sometimes the last to the first.
std::vector<std::string> Site::ChainPages() {
  std::vector<std::string> chain;
  for (uint64_t i = 2 + Below(OneIn(4) ? 10 : 3); i > 0; --i) {
    const std::string path = ExistingPage();
    if (std::find(chain.begin(), chain.end(), path) == chain.end()) chain.push_back(path);
  }
  std::string what = "chain";
  for (size_t i = 0; i < chain.size(); ++i) {
    const bool last = i + 1 == chain.size();
    pages_[chain[i]].moved_to = !last || OneIn(3) ? HrefTo(chain[(i + 1) % chain.size()]) : "";
    WritePage(chain[i]);
    what += " " + chain[i];
  }
  Log(what);
  return chain;
}

// Soon after the change: runs of observers that have seen it may still be in progress.
std::vector<std::string> Site::UndoChange() {
  const std::string path = before_->first;
  pages_[path] = before_->second;
  before_.reset();
  WritePage(path);
  Log("undo " + path);
  return {path};
}

// --- Files

void Site::WritePage(const std::string& path) { WriteFile(path, HtmlOf(pages_[path])); }

void Site::WriteFile(const std::string& path, const std::string& bytes) {
  const std::string at_first = scratch_ + "/file";
  std::ofstream(at_first, std::ios::binary | std::ios::trunc) << bytes;
  clock_nanos_ += 1'000'000;
  const timespec time{.tv_sec = clock_nanos_ / 1'000'000'000, .tv_nsec = clock_nanos_ % 1'000'000'000};
  const timespec times[2] = {time, time};
  if (utimensat(AT_FDCWD, at_first.c_str(), times, 0) != 0) Die(at_first);
  const fs::path place = folder_ + "/" + path;
  std::error_code error;
  fs::create_directories(place.parent_path(), error);
  Require(error, path);
  fs::rename(at_first, place, error);
  Require(error, path);
}

void Site::Remove(const std::string& path) {
  std::error_code error;
  fs::remove(folder_ + "/" + path, error);
  Require(error, path);
}

}  // namespace webindex
