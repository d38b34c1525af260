#include "server/rpc/reflection_service.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "grpc/reflection/v1alpha/reflection.pb.h"
#include "server/rpc/slices.h"

namespace warpline {
namespace {

namespace reflection = grpc::reflection::v1alpha;
namespace protobuf = google::protobuf;

void SetNotFound(reflection::ServerReflectionResponse& response, const std::string& what) {
  response.mutable_error_response()->set_error_code(static_cast<int>(grpc::StatusCode::NOT_FOUND));
  response.mutable_error_response()->set_error_message(absl::StrCat("not found: ", what));
}

// Adds the file and everything that it imports, each file once.
void AddFiles(const protobuf::FileDescriptor& file, std::set<const protobuf::FileDescriptor*>& added,
              reflection::FileDescriptorResponse& response) {
  if (!added.insert(&file).second) return;
  protobuf::FileDescriptorProto proto;
  file.CopyTo(&proto);
  response.add_file_descriptor_proto(proto.SerializeAsString());
  for (int i = 0; i < file.dependency_count(); ++i) AddFiles(*file.dependency(i), added, response);
}

void SetFile(reflection::ServerReflectionResponse& response, const protobuf::FileDescriptor* file,
             const std::string& asked) {
  if (file == nullptr) return SetNotFound(response, asked);
  std::set<const protobuf::FileDescriptor*> added;
  AddFiles(*file, added, *response.mutable_file_descriptor_response());
}

void SetExtensions(reflection::ServerReflectionResponse& response, const std::string& type) {
  const protobuf::DescriptorPool& pool = *protobuf::DescriptorPool::generated_pool();
  const protobuf::Descriptor* descriptor = pool.FindMessageTypeByName(type);
  if (descriptor == nullptr) return SetNotFound(response, type);
  std::vector<const protobuf::FieldDescriptor*> extensions;
  pool.FindAllExtensions(descriptor, &extensions);
  response.mutable_all_extension_numbers_response()->set_base_type_name(type);
  for (const protobuf::FieldDescriptor* extension : extensions) {
    response.mutable_all_extension_numbers_response()->add_extension_number(extension->number());
  }
}

const protobuf::FileDescriptor* FileOfExtension(const reflection::ExtensionRequest& request) {
  const protobuf::DescriptorPool& pool = *protobuf::DescriptorPool::generated_pool();
  const protobuf::Descriptor* type = pool.FindMessageTypeByName(request.containing_type());
  const protobuf::FieldDescriptor* extension =
      type != nullptr ? pool.FindExtensionByNumber(type, request.extension_number()) : nullptr;
  return extension != nullptr ? extension->file() : nullptr;
}

class ReflectionStream final : public MessageStream::Handler {
 public:
  explicit ReflectionStream(const ReflectionService& service) : service_(service) {}

  void OnMessage(MessageStream& stream, MessageSlices message) override {
    const std::string answer = service_.Answer(ToString(message.slices()));
    if (answer.empty()) {
      return stream.Finish(absl::InvalidArgumentError(
          "the message is not a valid grpc.reflection.v1alpha.ServerReflectionRequest"));
    }
    stream.Send(ToByteBuffer(answer));
  }
  void OnLastMessage(MessageStream& stream) override { stream.Finish(absl::OkStatus()); }

 private:
  const ReflectionService& service_;
};

}  // namespace

std::unique_ptr<MessageStream::Handler> ReflectionService::NewStream() const {
  return std::make_unique<ReflectionStream>(*this);
}

std::string ReflectionService::Answer(const std::string& message) const {
  using Request = reflection::ServerReflectionRequest;
  reflection::ServerReflectionResponse response;
  Request& request = *response.mutable_original_request();
  if (!request.ParseFromString(message)) return "";
  response.set_valid_host(request.host());
  const protobuf::DescriptorPool& pool = *protobuf::DescriptorPool::generated_pool();
  switch (request.message_request_case()) {
    case Request::kFileByFilename:
      SetFile(response, pool.FindFileByName(request.file_by_filename()), request.file_by_filename());
      break;
    case Request::kFileContainingSymbol:
      SetFile(response, pool.FindFileContainingSymbol(request.file_containing_symbol()),
              request.file_containing_symbol());
      break;
    case Request::kFileContainingExtension:
      SetFile(response, FileOfExtension(request.file_containing_extension()),
              absl::StrCat("extension ", request.file_containing_extension().extension_number(), " of ",
                           request.file_containing_extension().containing_type()));
      break;
    case Request::kAllExtensionNumbersOfType:
      SetExtensions(response, request.all_extension_numbers_of_type());
      break;
    case Request::kListServices:
      for (const std::string& service : services_) {
        response.mutable_list_services_response()->add_service()->set_name(service);
      }
      break;
    case Request::MESSAGE_REQUEST_NOT_SET:
      response.mutable_error_response()->set_error_code(static_cast<int>(grpc::StatusCode::INVALID_ARGUMENT));
      response.mutable_error_response()->set_error_message("the request asks for nothing");
      break;
  }
  return response.SerializeAsString();
}

}  // namespace warpline
