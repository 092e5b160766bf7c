#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of doxygen_filter.py: what becomes of the comments of a header."""

import unittest

import doxygen_filter


class DoxygenFilterTest(unittest.TestCase):

    def after_head(self, text):
        """What becomes of a text that follows the comment of its file."""
        lines = doxygen_filter.filtered("// A file.\n\n" + text, "percolator/a.h").split("\n")
        self.assertEqual(lines[:3], ["/// @file percolator/a.h", "/// A file.", ""])
        return "\n".join(lines[3:])

    def test_comments_before_and_behind_a_declaration(self):
        self.assertEqual(self.after_head("// An A.\nstruct A {\n  int a = 0;  // an a\n};\n"),
                         "/// An A.\nstruct A {\n  int a = 0;  ///< an a\n};\n")

    def test_a_comment_behind_a_field_may_have_several_lines(self):
        self.assertEqual(self.after_head("enum {\n  kA,  // one\n          // two\n  kB  // three\n};\n"),
                         "enum {\n  kA,  ///< one two\n  kB  ///< three\n};\n")

    def test_comments_of_nothing_are_left_out(self):
        self.assertEqual(self.after_head("// Details follow.\n\nint a;\n}  // namespace a\n"),
                         "\nint a;\n}  // namespace a\n")

    def test_strings_and_remarks_to_tools_are_no_comments(self):
        text = 'const char* a = "b;  // c";\n#endif  // A_H_\n'
        self.assertEqual(self.after_head(text), text)
        self.assertEqual(self.after_head("int a;  // NOLINT(a)\n"), "int a;\n")
        self.assertEqual(self.after_head("// One.\n// NOLINTNEXTLINE(a): why\nint a;\n"),
                         "/// One.\n// NOLINTNEXTLINE(a): why\nint a;\n")

    def test_only_code_is_markup(self):
        self.assertEqual(self.after_head("// See `a<b>`: A<B>, c_d & *e @f.\nint a;\n"),
                         "/// See `a<b>`: A\\<B\\>, c\\_d \\& \\*e \\@f.\nint a;\n")

    def test_indented_lines_are_code(self):
        self.assertEqual(self.after_head("// Use:\n//     if (*a) {\n//\n//     }\n// Then.\nint a;\n"),
                         "/// Use:\n///\n///     if (*a) {\n///\n///     }\n///\n/// Then.\nint a;\n")

    def test_words_in_capitals_begin_a_paragraph(self):
        self.assertEqual(self.after_head("// An A.\n//\n// LIFETIME  Ends\n//           once.\n// FORK      Not.\nint a;\n"),
                         "/// An A.\n///\n/// @par Lifetime\n/// Ends\n/// once.\n/// @par Fork\n/// Not.\nint a;\n")

    def test_a_comment_about_two_functions_is_given_to_both(self):
        self.assertEqual(self.after_head("// Sets. B as well.\nvoid A();\nvoid B(int b,\n       int c);\nvoid C();\n"),
                         "/// Sets. B as well.\nvoid A();\n/// Sets. B as well.\nvoid B(int b,\n       int c);\nvoid C();\n")
        self.assertEqual(self.after_head("// Sets.\nvoid A();\ntemplate <typename T>\nvoid A(T a);\n\nvoid A(int a);\n"),
                         "/// Sets.\nvoid A();\n/// Sets.\ntemplate <typename T>\nvoid A(T a);\n\nvoid A(int a);\n")

    def test_implementation_details_are_left_out(self):
        self.assertEqual(self.after_head("// Implementation detail.\nint a() const { return 1; }\nint b();\n\nint c();\n"),
                         "/// @cond\nint a() const { return 1; }\nint b();\n/// @endcond\n\nint c();\n")
        self.assertEqual(self.after_head("struct A {\n  // Implementation detail: b.\n  int b();\n};\n"),
                         "struct A {\n/// @cond\n  int b();\n/// @endcond\n};\n")

    def test_the_comment_of_a_file_follows_the_line_of_the_license(self):
        text = "// A file.\n\n// An A.\nint a;\n"
        self.assertEqual(doxygen_filter.filtered("// SPDX-License-Identifier: Apache-2.0\n\n" + text, "a.h"),
                         doxygen_filter.filtered(text, "a.h"))

    def test_a_comment_of_doxygen_stays(self):
        self.assertEqual(self.after_head("/// An A.\nint a;\n"), "/// An A.\nint a;\n")

    def test_the_lines_of_a_concept_are_no_function(self):
        text = "/// Like a T.\ntemplate <typename T>\nconcept A = B<T> &&\n    c<T> &&\n    (D<T> || E<T>);\nvoid f();\n"
        self.assertEqual(self.after_head(text.replace("///", "//")), text)

    def test_a_class_does_not_take_part_in_functions(self):
        text = "/// An A.\nclass A {\n public:\n  A();\n};\n"
        self.assertEqual(self.after_head(text.replace("///", "//")), text)


if __name__ == "__main__":
    unittest.main()
