// Command lines as people write them for Caffe, brought to the form the parser takes.
#pragma once

#include <string>
#include <vector>

namespace cafetiere {

/// -flag becomes --flag; a command that comes after flags moves to the front; switches of glog that
/// ask for what happens anyway (-logtostderr, -alsologtostderr) go away.
std::vector<std::string> normalise_arguments(const std::vector<std::string>& arguments,
                                             const std::vector<std::string>& commands);

}  // namespace cafetiere
