// SPDX-License-Identifier: Apache-2.0

#include "apps/webindex/print.h"

#include <cstdint>
#include <ctime>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>

namespace webindex {

using nlohmann::json;

namespace {

std::string Bold(const std::string& text, bool bold) { return bold ? "\033[1m" + text + "\033[0m" : text; }

std::string TextIn(const json& value) {
  return value.is_string() ? Printable(value.get<std::string>()) : std::string();
}

std::string Fixed(double number, int digits) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(digits) << number;
  return out.str();
}

std::string Moment(int64_t micros) {
  const std::time_t seconds = micros / 1'000'000;
  std::tm parts{};
  localtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &parts);
  return text;
}

std::string Snippet(const json& pieces, bool bold) {
  std::string text;
  for (const json& piece : pieces) text += Bold(TextIn(piece["text"]), bold && piece["marked"] == true);
  return text;
}

void PrintList(const char* name, const json& urls, std::ostream& out) {
  for (const json& url : urls) out << "   " << name << " " << TextIn(url) << "\n";
}

void PrintLinks(const std::string& title, const json& part, std::ostream& out) {
  const json& links = part["links"];
  const bool more = part["more"] == true;
  out << "\n" << title << (more ? ", the first " : ", ") << links.size() << (more ? " of more" : "") << ":\n";
  for (const json& link : links) {
    const std::string anchor = TextIn(link["anchor"]);
    out << "  " << TextIn(link["url"]) << (anchor.empty() ? "" : "   \"" + anchor + "\"") << "\n";
  }
}

}  // namespace

std::string Printable(std::string_view text) {
  std::string printable;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    // U+0080 to U+009F are control characters too: C2 80 to C2 9F.
    const bool is_c1 = byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if (is_c1) ++i;
    printable += is_c1 || byte < 0x20 || byte == 0x7F ? ' ' : static_cast<char>(byte);
  }
  return printable;
}

std::string WithCommas(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, ",");
  return text;
}

void PrintSearch(const json& answer, bool bold, std::ostream& out) {
  const uint64_t matches = answer["matches"];
  out << WithCommas(matches) << (matches == 1 ? " page" : " pages")
      << (matches > 0 && answer["all_terms"] == false ? " with some of the words" : "") << " of "
      << WithCommas(answer["documents"]) << ", " << Fixed(answer["took_micros"].get<double>() / 1000, 1) << " ms\n";
  int number = 0;
  for (const json& hit : answer["hits"]) {
    const std::string title = TextIn(hit["title"]);
    out << "\n"
        << ++number << ". " << Bold(title.empty() ? TextIn(hit["url"]) : title, bold) << "\n   " << TextIn(hit["url"])
        << "   score " << Fixed(hit["score"], 2) << ", rank " << Fixed(hit["rank"], 2) << "\n   "
        << Snippet(hit["snippet"], bold) << "\n";
    PrintList("duplicate:", hit["duplicates"], out);
    PrintList("similar:", hit["similar"], out);
  }
}

void PrintPage(const json& answer, bool bold, std::ostream& out) {
  out << Bold(TextIn(answer["title"]), bold) << "\n" << TextIn(answer["url"]) << "\n\n";
  if (answer["exists"] == false) out << "There is no such page, but other pages link to it.\n";
  out << "rank       " << Fixed(answer["rank"], 3) << "\n";
  if (answer["exists"] == true) {
    out << "loaded     " << Moment(answer["loaded_micros"]) << ", " << WithCommas(answer["bytes"]) << " bytes\n";
  }
  if (const std::string moved = TextIn(answer["moved_to"]); !moved.empty()) out << "moved to   " << moved << "\n";
  if (const json& cluster = answer["cluster"]; cluster.is_object()) {
    out << "cluster    " << TextIn(cluster["key"]) << "\ncanonical  " << TextIn(cluster["canonical"]) << "\n";
    for (const json& member : cluster["members"]) out << "member     " << TextIn(member) << "\n";
  }
  for (const json& note : answer["notes"]) out << "note       " << TextIn(note) << "\n";
  out << "summary    " << TextIn(answer["summary"]["description"]) << "\n";
  for (const json& path : answer["resources"]) out << "uses       " << TextIn(path) << "\n";
  for (const json& version : answer["history"]) {
    out << "version    " << Moment(version["loaded_micros"]) << "  " << WithCommas(version["bytes"]) << " bytes  "
        << TextIn(version["title"]) << "\n";
  }
  PrintLinks("Links to it", answer["links_in"], out);
  PrintLinks("Links from it", answer["links_out"], out);
}

void PrintStats(const json& answer, std::ostream& out) {
  constexpr const char* kNames[][2] = {
      {"pages", "pages"},
      {"files", "other files"},
      {"clusters", "clusters of duplicates"},
      {"duplicates", "pages that are duplicates"},
      {"links", "links between pages"},
      {"documents", "documents served"},
      {"terms", "different terms"},
      {"postings", "postings"},
      {"disk_bytes", "bytes on disk"},
  };
  for (const auto& [key, name] : kNames) {
    if (!answer.contains(key)) continue;
    out << std::setw(15) << WithCommas(answer[key]) << "  " << name << "\n";
  }
}

}  // namespace webindex
