// SPDX-License-Identifier: Apache-2.0

// percolator completion: prints completion scripts for bash, zsh and fish. It generates them from the definition of the
// command line, so they cover every command.
//
// All three work alike. The commands before the cursor form a path, such as "tables create". The script offers the
// subcommands and options of that path, or files after an option that takes a value.

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "apps/percolator/commands.h"

namespace percolator::cli {
namespace {

// A word that can be typed next.
struct Word {
  std::string text;
  std::string description;
  bool is_option = false;
  bool takes_value = false;
};

struct Place {
  std::string path;  // "", "get", "tables create"
  std::vector<Word> words;
};

void AddOptions(const CLI::App& app, std::vector<Word>* words) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      words->push_back({"--" + name, option->get_description(), true, option->get_items_expected_max() > 0});
    }
  }
}

// Adds the places of `app` and of its subcommands. Options of the program may stand anywhere.
void Collect(const CLI::App& app, const CLI::App& program, const std::string& path, std::vector<Place>* places) {
  Place place{path, {}};
  const std::vector<const CLI::App*> commands = app.get_subcommands([](const CLI::App* /*any*/) { return true; });
  for (const CLI::App* command : commands) {
    place.words.push_back({command->get_name(), command->get_description(), false, false});
  }
  AddOptions(app, &place.words);
  if (&app != &program) AddOptions(program, &place.words);
  std::stable_sort(place.words.begin(), place.words.end(),
                   [](const Word& a, const Word& b) { return a.text < b.text; });
  const auto same = [](const Word& a, const Word& b) { return a.text == b.text; };
  place.words.erase(std::unique(place.words.begin(), place.words.end(), same), place.words.end());
  places->push_back(std::move(place));
  for (const CLI::App* command : commands) {
    Collect(*command, program, path.empty() ? command->get_name() : path + " " + command->get_name(), places);
  }
}

std::vector<Place> PlacesOf(const CLI::App& program) {
  std::vector<Place> places;
  Collect(program, program, "", &places);
  return places;
}

// Puts text into single quotes, as all three shells read them.
std::string Quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

// "a" | "b" | ... for a case of bash and zsh.
std::string CasePattern(const std::vector<std::string>& texts) {
  std::string pattern;
  for (const std::string& text : texts) pattern += (pattern.empty() ? "" : "|") + Quoted(text);
  return pattern;
}

std::vector<std::string> Paths(const std::vector<Place>& places) {
  std::vector<std::string> paths;
  for (const Place& place : places) {
    if (!place.path.empty()) paths.push_back(place.path);
  }
  return paths;
}

std::vector<std::string> OptionsWithValue(const std::vector<Place>& places) {
  std::vector<std::string> options;
  for (const Place& place : places) {
    for (const Word& word : place.words) {
      if (word.takes_value) options.push_back(word.text);
    }
  }
  std::sort(options.begin(), options.end());
  options.erase(std::unique(options.begin(), options.end()), options.end());
  return options;
}

void PrintBash(const std::vector<Place>& places) {
  std::cout << R"(# percolator completion bash
_percolator() {
  local current="${COMP_WORDS[COMP_CWORD]}" path="" skip="" word words
  COMPREPLY=()
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    if [ -n "$skip" ]; then skip=""; continue; fi
    case "$word" in )"
            << CasePattern(OptionsWithValue(places)) << R"() skip=1; continue ;; esac
    case "${path:+$path }$word" in )"
            << CasePattern(Paths(places)) << R"() path="${path:+$path }$word" ;; esac
  done
  if [ -n "$skip" ]; then
    COMPREPLY=($(compgen -f -- "$current"))
    return
  fi
  case "$path" in
)";
  for (const Place& place : places) {
    std::string words;
    for (const Word& word : place.words) words += (words.empty() ? "" : " ") + word.text;
    std::cout << "    " << Quoted(place.path) << ") words=" << Quoted(words) << " ;;\n";
  }
  std::cout << R"(  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -F _percolator percolator
)";
}

void PrintZsh(const std::vector<Place>& places) {
  std::cout << R"(#compdef percolator
# percolator completion zsh
_percolator() {
  local current_path="" skip="" word
  local -a choices
  for word in "${(@)words[2,CURRENT-1]}"; do
    if [[ -n "$skip" ]]; then skip=""; continue; fi
    case "$word" in )"
            << CasePattern(OptionsWithValue(places)) << R"() skip=1; continue ;; esac
    case "${current_path:+$current_path }$word" in )"
            << CasePattern(Paths(places)) << R"() current_path="${current_path:+$current_path }$word" ;; esac
  done
  if [[ -n "$skip" ]]; then
    _files
    return
  fi
  case "$current_path" in
)";
  for (const Place& place : places) {
    std::cout << "    " << Quoted(place.path) << ") choices=(";
    for (const Word& word : place.words) std::cout << " " << Quoted(word.text + ":" + word.description);
    std::cout << " ) ;;\n";
  }
  std::cout << R"(  esac
  _describe percolator choices
}
compdef _percolator percolator
)";
}

void PrintFish(const std::vector<Place>& places) {
  std::cout << R"(# percolator completion fish
function __percolator_path
  set -l path ""
  set -l skip ""
  for word in (commandline -opc)[2..-1]
    if test -n "$skip"
      set skip ""
      continue
    end
    switch "$word"
      case)";
  for (const std::string& option : OptionsWithValue(places)) std::cout << " " << Quoted(option);
  std::cout << R"(
        set skip 1
        continue
    end
    set -l longer (string trim "$path $word")
    switch "$longer"
      case)";
  for (const std::string& path : Paths(places)) std::cout << " " << Quoted(path);
  std::cout << R"(
        set path "$longer"
    end
  end
  echo "$path"
end
complete -c percolator -f
)";
  for (const Place& place : places) {
    const std::string condition = Quoted("test (__percolator_path) = \"" + place.path + "\"");
    for (const Word& word : place.words) {
      std::cout << "complete -c percolator -n " << condition;
      if (word.is_option) {
        std::cout << " -l " << word.text.substr(2) << (word.takes_value ? " -r -F" : "");
      } else {
        std::cout << " -a " << Quoted(word.text);
      }
      std::cout << " -d " << Quoted(word.description) << "\n";
    }
  }
}

using Printer = void (*)(const std::vector<Place>& places);

void AddShell(CLI::App& command, const CLI::App& program, Shell& shell, const std::string& name, Printer print,
              const std::string& example) {
  CLI::App* const one = command.add_subcommand(name, "Prints the script for " + name);
  one->footer("Example:\n  " + example);
  one->callback([&program, &shell, print] {
    shell.Choose([&program, print]() -> absl::StatusOr<Exit> {
      print(PlacesOf(program));
      return Exit::kDone;
    });
  });
}

}  // namespace

void AddCompletion(CLI::App& app, Shell& shell) {
  CLI::App* const command = app.add_subcommand("completion", "Prints a shell completion script");
  command->require_subcommand(1);
  command->footer(R"(Examples:
  source <(percolator completion bash)                                     in ~/.bashrc
  percolator completion zsh > "${fpath[1]}/_percolator"
  percolator completion fish > ~/.config/fish/completions/percolator.fish)");
  AddShell(*command, app, shell, "bash", PrintBash, "source <(percolator completion bash)");
  AddShell(*command, app, shell, "zsh", PrintZsh, "percolator completion zsh > \"${fpath[1]}/_percolator\"");
  AddShell(*command, app, shell, "fish", PrintFish,
           "percolator completion fish > ~/.config/fish/completions/percolator.fish");
}

}  // namespace percolator::cli
