package refusal

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/session/internal/skill"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Environment is Store for a request about one environment.
func Environment(err error, name, requestID string) error {
	switch {
	case errors.Is(err, store.ErrNotFound):
		return Of(codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_ENVIRONMENT_NOT_FOUND,
			fmt.Sprintf("There is no environment %s. List the environments (GET /v1/environments) to see which there are.", name),
			apierr.Resource("fairlead.dev/Environment", name, "not found"))
	case errors.Is(err, store.ErrExists):
		return Of(codes.AlreadyExists, sessionv1.ErrorReason_ERROR_REASON_ALREADY_EXISTS,
			fmt.Sprintf("There is already an environment %s. Choose another environment_id, or leave it out to get a new one.", name),
			apierr.Resource("fairlead.dev/Environment", name, "exists already"))
	case errors.Is(err, store.ErrArchived):
		return EnvironmentArchived(name)
	}
	return Agent(err, name, requestID)
}

// EnvironmentArchived refuses an archived environment.
func EnvironmentArchived(name string) error {
	return Of(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_ARCHIVED,
		fmt.Sprintf("%s is archived: it takes no new sessions and no new versions. Use another environment, or bring it back (ArchiveEnvironment with undo).", name),
		apierr.Precondition("ENVIRONMENT", name, "archived"))
}

// SkillOfSession refuses a skill that a session or its agent asks for, by the field of the request that names it.
func SkillOfSession(asked, name, field string) error {
	return Of(codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_SKILL_NOT_FOUND,
		fmt.Sprintf("There is no skill %s for you. List the skills to see which there are (GET /v1/skills, and GET /v1/skills?user=users/me).", asked),
		apierr.Resource("fairlead.dev/Skill", "skills/"+name, "not found"), apierr.Field(field, "names the skill "+asked+", which does not exist"))
}

// SkillNotFound returns the error for a skill that a request names.
func SkillNotFound(name string) error {
	return Of(codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_SKILL_NOT_FOUND,
		fmt.Sprintf("There is no skill %s, or no such version. A skill of a user is named with the field user; list the skills to see which there are (GET /v1/skills).", name),
		apierr.Resource("fairlead.dev/Skill", name, "not found"))
}

// Skill is Store for a request about one skill.
func Skill(err error, name, requestID string) error {
	var bad *skill.Error
	switch {
	case errors.As(err, &bad):
		return SkillFaults(bad)
	case errors.Is(err, store.ErrNotFound):
		return SkillNotFound(name)
	case errors.Is(err, store.ErrExists):
		return Of(codes.AlreadyExists, sessionv1.ErrorReason_ERROR_REASON_ALREADY_EXISTS,
			fmt.Sprintf("There is already a skill %s. Make a new version of it (PUT /v1/%s), or change the name in SKILL.md.", name, name),
			apierr.Resource("fairlead.dev/Skill", name, "exists already"))
	case errors.Is(err, store.ErrArchived):
		return Of(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_ARCHIVED,
			fmt.Sprintf("%s is archived: it takes no new sessions and no new versions. Bring it back first (ArchiveSkill with undo).", name),
			apierr.Precondition("SKILL", name, "archived"))
	case errors.Is(err, store.ErrTooMany):
		return Of(codes.ResourceExhausted, sessionv1.ErrorReason_ERROR_REASON_TOO_MANY,
			"There are as many skills, or versions of the skill, as there may be. Delete a skill, or ask the operator for more (session.skills).", apierr.Quota(name, "skills"))
	case errors.Is(err, skill.ErrNoStore):
		return Of(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_NO_FILE_STORE,
			"This server keeps no files, and so no skills: with Postgres it needs an object store that all replicas reach. Ask the operator to set session.files.store.",
			apierr.Precondition("FILE_STORE", "skills", "no store is configured"))
	}
	return Store(err, Subject{RequestID: requestID})
}

// SkillFaults returns the error for an archive that is not a skill. It names each fault by its file.
func SkillFaults(bad *skill.Error) error {
	var details []apierr.Option
	for _, fault := range bad.Faults {
		field := "file"
		if fault.File != "" {
			field += "[" + fault.File + "]"
		}
		details = append(details, apierr.Field(field, fault.Text))
	}
	return Of(codes.InvalidArgument, sessionv1.ErrorReason_ERROR_REASON_INVALID_SKILL,
		"The archive is not a skill, and nothing was changed. "+bad.Error()+".", details...)
}

// Model is Store for a request about one own entry.
func Model(err error, name, requestID string) error {
	switch {
	case errors.Is(err, store.ErrNotFound):
		return ModelNotFound(name)
	case errors.Is(err, store.ErrExists):
		return Of(codes.AlreadyExists, sessionv1.ErrorReason_ERROR_REASON_ALREADY_EXISTS,
			fmt.Sprintf("There is already a model %s. Choose another model_id, or leave it out to get a new one.", name),
			apierr.Resource("fairlead.dev/Model", name, "exists already"))
	}
	return Agent(err, name, requestID)
}

// ModelNotFound refuses a model that does not exist.
func ModelNotFound(name string) error {
	return Of(codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_MODEL_NOT_FOUND,
		fmt.Sprintf("There is no model %.300q. List the models (GET /v1/models) to see which there are.", name),
		apierr.Resource("fairlead.dev/Model", name, "not found"))
}
